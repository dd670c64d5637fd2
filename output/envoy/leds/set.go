package leds

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
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Rows are the rows of the two types of resources that change.
type Rows struct{ Assignments, Collections world.Row }

// Settings are the settings of a [Maker].
type Settings struct {
	Rows   Rows
	Above  int                                        // the most endpoints of a service port without collections
	Whole  func(s *catalog.Service, port uint32) bool // reports whether clients differ in their endpoints; nil for never
	Limits Limits
	Mesh   *policy.Mesh // where endpoints are called by mutual TLS; nil for nowhere
	Epoch  uint32       // distinguishes the collections of this process from others
}

// Limits are the changes that a collection takes before it gets another name.
type Limits struct {
	Changes int
	Weight  uint64 // the difference from the weight in the assignment
}

// Default returns the settings of a process, with a random epoch.
func Default(rows Rows, above int) Settings {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	return Settings{Rows: rows, Above: above, Limits: Limits{Changes: 1024}, Epoch: binary.LittleEndian.Uint32(random[:])}
}

// Maker makes the set of each snapshot from the set before. It has one caller at a time.
type Maker struct {
	Settings

	set   *Set   // nil before the first snapshot
	named uint32 // the collections so far
}

// New returns a maker without a set.
func New(s Settings) *Maker {
	return &Maker{Settings: s}
}

// Set is the service ports with collections in a snapshot. It is immutable.
type Set struct {
	epoch uint32
	ports immutable.Map[ServicePort, *Spread]
	named immutable.Map[uint32, ServicePort] // collections by their number
}

// ServicePort is a port of a service.
type ServicePort struct {
	catalog.ServiceKey
	Port uint32
}

func (p ServicePort) compare(o ServicePort) int {
	return cmp.Or(catalog.ServiceKey.Compare(p.ServiceKey, o.ServiceKey), cmp.Compare(p.Port, o.Port))
}

// Of returns the collections of a service port; nil if it has none.
func (s *Set) Of(service *catalog.Service, port uint32) *Spread {
	if s == nil {
		return nil
	}
	found, ok := s.ports.Get(ServicePort{service.Key, port})
	if !ok || found.Partition == nil || found.endpoints != service.Endpoints(port) {
		return nil
	}
	return found
}

// Globs yields the names of all collections, as Envoy asks for them.
func (s *Set) Globs() iter.Seq[string] {
	return func(yield func(string) bool) {
		for number := range s.named.All() {
			if !yield((&Collection{Epoch: s.epoch, Number: number}).Glob()) {
				return
			}
		}
	}
}

// Collection finds a collection by its name; nil if there is none.
func (s *Set) Collection(name string) *Collection {
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
		if c.Number == number {
			return c
		}
	}
	return nil
}

// collectionRoot begins the names of collections. The form is Envoy's. Names are short, since
// each member contains one.
const collectionRoot = "xdstp://i/envoy.config.endpoint.v3.LbEndpoint/"

// Prefix begins the names of a collection's members.
func (c *Collection) Prefix() string {
	return collectionRoot + strconv.FormatUint(uint64(c.Epoch), 36) + "-" + strconv.FormatUint(uint64(c.Number), 36) + "/"
}

// Glob is the name under which Envoy asks for all members.
func (c *Collection) Glob() string { return c.Prefix() + "*" }

// parseGlob parses a name of [Collection.Glob].
func parseGlob(name string) (epoch, number uint32, ok bool) {
	rest, ours := strings.CutPrefix(name, collectionRoot)
	rest, all := strings.CutSuffix(rest, "/*")
	first, second, two := strings.Cut(rest, "-")
	e, notEpoch := strconv.ParseUint(first, 36, 32)
	n, notNumber := strconv.ParseUint(second, 36, 32)
	if !ours || !all || !two || notEpoch != nil || notNumber != nil {
		return 0, 0, false
	}
	c := Collection{Epoch: uint32(e), Number: uint32(n)}
	return c.Epoch, c.Number, c.Glob() == name
}

// Step makes the set of a snapshot from the set before and the change between them. It
// returns the resources that differ.
func (s *Maker) Step(now *catalog.Snapshot, c catalog.Change) (set *Set, changed []world.Changed) {
	first := s.set == nil
	if first {
		s.set = &Set{
			epoch: s.Epoch, ports: immutable.New[ServicePort, *Spread](ServicePort.compare), named: immutable.New[uint32, ServicePort](cmp.Compare[uint32]),
		}
	}
	e := &edit{Maker: s, ports: s.set.ports.Edit(), named: s.set.named.Edit()}
	if first {
		for service := range now.Services() {
			e.take(service.Key, catalog.ServiceChange{New: service})
		}
	} else {
		for _, key := range slices.SortedFunc(maps.Keys(c.Services), catalog.ServiceKey.Compare) {
			e.take(key, c.Services[key])
		}
	}
	s.set = &Set{epoch: s.Epoch, ports: e.ports.Map(), named: e.named.Map()}
	return s.set, e.changed
}

// edit is a set in the making.
type edit struct {
	*Maker
	ports   *immutable.Editor[ServicePort, *Spread]
	named   *immutable.Editor[uint32, ServicePort]
	changed []world.Changed
}

func (e *edit) take(key catalog.ServiceKey, c catalog.ServiceChange) {
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
		e.takePort(ServicePort{key, port}, c)
	}
	if c.Old == nil || c.New == nil || !reach.SameStanding(c.Old, c.New) {
		e.noteSameHost(key, c)
	}
}

// noteSameHost lists the collections of other services of the same host. A view contains one
// service of a host, so it may change over to another.
func (e *edit) noteSameHost(key catalog.ServiceKey, c catalog.ServiceChange) {
	namespaces, seen := reach.Audience(c.Old, c.New)
	if !seen {
		return
	}
	for at, other := range e.ports.View().From(ServicePort{ServiceKey: catalog.ServiceKey{Host: key.Host}}) {
		if at.Host != key.Host {
			return
		}
		if at.ServiceKey == key {
			continue
		}
		for _, of := range other.collections {
			e.changed = append(e.changed, world.Changed{Row: e.Rows.Collections, Name: of.Glob(), Audience: namespaces})
		}
	}
}

func (e *edit) takePort(at ServicePort, c catalog.ServiceChange) {
	was, _ := e.ports.View().Get(at)
	is := e.next(at, was, c)
	if was == is {
		return
	}
	e.enter(at, was, is)
	e.note(at, was, is, c)
}

// next returns the collections of a service port after a change; nil if it is too small.
func (e *edit) next(at ServicePort, was *Spread, c catalog.ServiceChange) *Spread {
	if c.New == nil || !e.large(at, was, c.New) {
		return nil
	}
	if was != nil && was.endpoints == c.New.Endpoints(at.Port) && c.Old != nil && reach.SameOffer(c.Old, c.New) {
		return was
	}
	follows := was != nil && c.Old != nil && was.endpoints == c.Old.Endpoints(at.Port) && reach.SameOffer(c.Old, c.New)
	if follows {
		if next := was.next(at.Port, c.New.Endpoints(at.Port), c.Endpoints, e.Mesh.In(at.Namespace), e.Limits); next.Partition != nil || next.unfit > 0 {
			return next
		}
	}
	return e.build(at, c.New.Endpoints(at.Port))
}

// large reports whether a service port has collections. It gets them above a number of
// endpoints, and keeps them until it has half as many.
func (e *edit) large(at ServicePort, was *Spread, s *catalog.Service) bool {
	port, ok := s.Port(at.Port)
	if !ok || s.ResolutionAt(at.Port) != model.ResolutionStatic || reach.FormFor(reach.KindEnvoy, s, port) != reach.EDS || e.Whole != nil && e.Whole(s, at.Port) {
		return false
	}
	least := e.Above + 1
	if was != nil {
		least = max(e.Above/2, 1)
	}
	return s.Endpoints(at.Port).Counts().Total >= least
}

// enter replaces the collections of a service port.
func (e *edit) enter(at ServicePort, was, is *Spread) {
	if was.partitionOf() != is.partitionOf() {
		for _, c := range was.all() {
			e.named.Delete(c.Number)
		}
		for _, c := range is.all() {
			e.named.Set(c.Number, at)
		}
	}
	if is == nil {
		e.ports.Delete(at)
	} else {
		e.ports.Set(at, is)
	}
}

// note lists the resources that differ: the collections, and the assignment if it names
// other collections.
func (e *edit) note(at ServicePort, was, is *Spread, c catalog.ServiceChange) {
	namespaces, seen := reach.Audience(c.Old, c.New)
	if !seen {
		return
	}
	if was.partitionOf() != is.partitionOf() {
		e.changed = append(e.changed, world.Changed{Row: e.Rows.Assignments, Name: names.Cluster(at.Host, at.Port), Audience: namespaces, Urgent: true})
	}
	before := map[*Collection]struct{}{}
	for _, c := range was.all() {
		before[c] = struct{}{}
	}
	names := map[string]bool{}
	for _, c := range is.all() {
		if _, same := before[c]; !same {
			names[c.Glob()] = c.lost
		}
		delete(before, c)
	}
	for c := range before {
		names[c.Glob()] = names[c.Glob()]
	}
	for name, lost := range names {
		e.changed = append(e.changed, world.Changed{Row: e.Rows.Collections, Name: name, Audience: namespaces, Urgent: lost})
	}
}
