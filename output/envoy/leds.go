package envoy

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push"
)

// steps makes worlds, each from the one before.
type steps struct {
	without func(now *catalog.Snapshot, c catalog.Change, complete bool, root string) push.Update
	above   int
	whole   func(s *catalog.Service, port uint32) bool // reports whether assignments differ by who asks; nil for none
	bears   bears
	spreads *spreads // nil while there are none to make
	epoch   uint32   // tells the collections of this process from those of others
	named   uint32   // collections so far
}

// bears is what a collection takes in any case before it is named anew.
type bears struct {
	changes int
	weight  uint64 // more or less than the assignment says
}

// newSteps adds collections to what makes steps without them.
func newSteps(without func(*catalog.Snapshot, catalog.Change, bool, string) push.Update, leds policy.LEDS) *steps {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	return &steps{without: without, above: leds.Above, bears: bears{changes: 1024}, epoch: binary.LittleEndian.Uint32(random[:])}
}

// step is as [Step], with large services in collections.
func (s *steps) step(now *catalog.Snapshot, c catalog.Change, complete bool, root string) push.Update {
	changed := s.advance(now, c)
	u := s.without(now, c, complete, root)
	if world, ok := u.World.(*World); ok {
		with := *world
		with.spreads = s.spreads
		u.World = &with
	}
	u.Changed = append(u.Changed, changed...)
	return u
}

// spreads are the service ports whose endpoints go one by one. It is immutable.
type spreads struct {
	epoch uint32
	ports immutable.Map[servicePort, *spread]
	named immutable.Map[uint32, servicePort] // collections by their number
}

type servicePort struct {
	catalog.ServiceKey
	port uint32
}

func (p servicePort) compare(o servicePort) int {
	return cmp.Or(reach.CompareKeys(p.ServiceKey, o.ServiceKey), cmp.Compare(p.port, o.port))
}

// of is the spread of a service port; nil if its endpoints do not go one by one.
func (s *spreads) of(service *catalog.Service, port uint32) *spread {
	if s == nil {
		return nil
	}
	found, ok := s.ports.Get(servicePort{service.Key, port})
	if !ok || found.partition == nil || found.endpoints != service.Endpoints(port) {
		return nil
	}
	return found
}

// collection finds what a name in the protocol stands for; nil if nothing.
func (s *spreads) collection(name string) *collection {
	if s == nil {
		return nil
	}
	epoch, number, ok := parseGlob(name)
	if !ok || epoch != s.epoch {
		return nil
	}
	at, ok := s.named.Get(number)
	if !ok {
		return nil
	}
	found, _ := s.ports.Get(at)
	for _, c := range found.collections {
		if c.number == number {
			return c
		}
	}
	return nil
}

// Names of collections are in the form that Envoy demands. They are short, for each
// member that changes carries one.
const collectionRoot = "xdstp://i/envoy.config.endpoint.v3.LbEndpoint/"

// prefix is what the names of a collection's members begin with.
func (c *collection) prefix() string {
	return collectionRoot + strconv.FormatUint(uint64(c.epoch), 36) + "-" + strconv.FormatUint(uint64(c.number), 36) + "/"
}

// glob is the name under which Envoy asks for all members.
func (c *collection) glob() string { return c.prefix() + "*" }

// parseGlob accepts exactly what glob writes.
func parseGlob(name string) (epoch, number uint32, ok bool) {
	rest, ours := strings.CutPrefix(name, collectionRoot)
	rest, all := strings.CutSuffix(rest, "/*")
	first, second, two := strings.Cut(rest, "-")
	e, notEpoch := strconv.ParseUint(first, 36, 32)
	n, notNumber := strconv.ParseUint(second, 36, 32)
	if !ours || !all || !two || notEpoch != nil || notNumber != nil {
		return 0, 0, false
	}
	c := collection{epoch: uint32(e), number: uint32(n)}
	return c.epoch, c.number, c.glob() == name
}

// advance takes a change into account, and returns the resources that differ for it.
func (s *steps) advance(now *catalog.Snapshot, c catalog.Change) (changed []push.Changed) {
	first := s.spreads == nil
	if first {
		s.spreads = &spreads{
			epoch: s.epoch, ports: immutable.New[servicePort, *spread](servicePort.compare), named: immutable.New[uint32, servicePort](cmp.Compare[uint32]),
		}
	}
	e := &spreadsEdit{steps: s, ports: s.spreads.ports.Edit(), named: s.spreads.named.Edit()}
	if first {
		for service := range now.Services() {
			e.take(service.Key, catalog.ServiceChange{New: service})
		}
	} else {
		for _, key := range slices.SortedFunc(maps.Keys(c.Services), reach.CompareKeys) {
			e.take(key, c.Services[key])
		}
	}
	s.spreads = &spreads{epoch: s.epoch, ports: e.ports.Map(), named: e.named.Map()}
	return e.changed
}

// spreadsEdit is a step of all spreads in the making.
type spreadsEdit struct {
	*steps
	ports   *immutable.Editor[servicePort, *spread]
	named   *immutable.Editor[uint32, servicePort]
	changed []push.Changed
}

func (e *spreadsEdit) take(key catalog.ServiceKey, c catalog.ServiceChange) {
	ports := map[uint32]struct{}{}
	for _, s := range []*catalog.Service{c.Old, c.New} {
		if s == nil {
			continue
		}
		for _, port := range s.Ports {
			ports[port.Number] = struct{}{}
		}
	}
	for _, port := range slices.Sorted(maps.Keys(ports)) {
		e.takePort(servicePort{key, port}, c)
	}
	if c.Old == nil || c.New == nil || !sameStanding(c.Old, c.New) {
		e.noteRivals(key, c)
	}
}

// noteRivals lists the collections of other services of the same host: who sees one of
// these from now on may not see the others any more, or the other way round.
func (e *spreadsEdit) noteRivals(key catalog.ServiceKey, c catalog.ServiceChange) {
	namespaces, seen := audience(c.Old, c.New)
	if !seen {
		return
	}
	for at, rival := range e.ports.View().From(servicePort{ServiceKey: catalog.ServiceKey{Host: key.Host}}) {
		if at.Host != key.Host {
			return
		}
		if at.ServiceKey == key {
			continue
		}
		for _, of := range rival.collections {
			e.changed = append(e.changed, push.Changed{Row: MemberType, Name: of.glob(), Audience: namespaces})
		}
	}
}

func (e *spreadsEdit) takePort(at servicePort, c catalog.ServiceChange) {
	was, _ := e.ports.View().Get(at)
	is := e.next(at, was, c)
	if was == is {
		return
	}
	e.enter(at, was, is)
	e.note(at, was, is, c)
}

// next is the spread of a service port after a change; nil if it is too small.
func (e *spreadsEdit) next(at servicePort, was *spread, c catalog.ServiceChange) *spread {
	if c.New == nil || !e.large(at, was, c.New) {
		return nil
	}
	if was != nil && was.endpoints == c.New.Endpoints(at.port) && c.Old != nil && sameOffer(c.Old, c.New) {
		return was
	}
	follows := was != nil && c.Old != nil && was.endpoints == c.Old.Endpoints(at.port) && sameOffer(c.Old, c.New)
	if follows {
		if next := was.next(at.port, c.New.Endpoints(at.port), c.Endpoints, e.bears); next.partition != nil || next.unfit > 0 {
			return next
		}
	}
	return e.build(at, c.New.Endpoints(at.port))
}

// large reports whether the endpoints of a service port go one by one. One that has
// become large stays it until it has half as many, so that it does not flap.
func (e *spreadsEdit) large(at servicePort, was *spread, s *catalog.Service) bool {
	port, ok := s.Port(at.port)
	if !ok || s.Resolution != model.ResolutionStatic || reach.FormFor(reach.KindEnvoy, s, port) != reach.EDS || s.Traffic.Near() || confined(s) || e.whole != nil && e.whole(s, at.port) {
		return false
	}
	least := e.above + 1
	if was != nil {
		least = max(e.above/2, 1)
	}
	return s.Endpoints(at.port).Counts().Total >= least
}

// enter puts a spread in the place of another.
func (e *spreadsEdit) enter(at servicePort, was, is *spread) {
	if was.partitionOf() != is.partitionOf() {
		for _, c := range was.all() {
			e.named.Delete(c.number)
		}
		for _, c := range is.all() {
			e.named.Set(c.number, at)
		}
	}
	if is == nil {
		e.ports.Delete(at)
	} else {
		e.ports.Set(at, is)
	}
}

// note lists the resources that differ: the assignment, if it names other collections,
// and the collections.
func (e *spreadsEdit) note(at servicePort, was, is *spread, c catalog.ServiceChange) {
	namespaces, seen := audience(c.Old, c.New)
	if !seen {
		return
	}
	if was.partitionOf() != is.partitionOf() {
		e.changed = append(e.changed, push.Changed{Row: EndpointType, Name: names.Cluster(at.Host, at.port), Audience: namespaces, Urgent: true})
	}
	before := map[*collection]struct{}{}
	for _, c := range was.all() {
		before[c] = struct{}{}
	}
	names := map[string]bool{}
	for _, c := range is.all() {
		if _, same := before[c]; !same {
			names[c.glob()] = c.lost
		}
		delete(before, c)
	}
	for c := range before {
		names[c.glob()] = names[c.glob()]
	}
	for name, lost := range names {
		e.changed = append(e.changed, push.Changed{Row: MemberType, Name: name, Audience: namespaces, Urgent: lost})
	}
}

// memberNames yields the collections of the services that a view has.
func memberNames(w *state, v View) iter.Seq[string] {
	if !v.members {
		return nothing
	}
	return func(yield func(string) bool) {
		for number := range w.spreads.named.All() {
			name := (&collection{epoch: w.spreads.epoch, number: number}).glob()
			if _, ok := findMembers(w, v, name); ok && !yield(name) {
				return
			}
		}
	}
}

// findMembers finds a collection, for who may see the service.
func findMembers(w *state, v View, name string) (push.Subject, bool) {
	if !v.members {
		return nil, false
	}
	c := w.spreads.collection(name)
	if c == nil {
		return nil, false
	}
	s, ok := w.snapshot.Resolve(v.viewer(), c.Host)
	if !ok || s.Key != c.ServiceKey {
		return nil, false
	}
	return roster{c, -1}, true
}
