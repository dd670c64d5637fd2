package servicecenter

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// goneAfter is how many lists in a row must lack a service.
const goneAfter = 2

// state is the known state of the registry, updated by answers. It makes no requests.
type state struct {
	config     Config
	rules      rules
	naming     *naming
	order      order
	perVersion bool

	entries map[Key]*entry
	keys    []Key // of entries, in order
	units   map[Identity]*unit
	called  names
	unnamed bool                   // services have come or gone since they were named
	before  map[string][]knownPort // ports by place, as stored before the first listing
	ids     map[string]Key         // keys by the registry's service ids
	members []listed               // mirrored services of the list
	ignored map[string]int         // of the list

	dirty map[Identity]bool // services to be listed again
	gone  []string          // places of services that are gone since the last listing
	moved []move            // names that another service has since then

	directly directness

	disowned []string // places of stored records that are no mirrored service
}

// entry is the known state of a key.
type entry struct {
	units     []Identity
	rev       string
	instances []Instance
	known     bool   // the key has been found
	trouble   string // why the state may be old; empty if it is not
	denials   int    // finds in a row that report no such service

	direct  *direct // result of a direct find; nil if the registry's cache shows the same
	changed bool    // the cached state, since the last direct find
	turn    uint64  // of the last direct find
}

// unit is one service of the mesh: all versions of a key, or one.
type unit struct {
	missing int // lists in a row that lack it
	ports   []knownPort
	due     time.Time // when a port is to be dropped; zero if none is
	left    int       // properties that cannot be labels
}

func newState(c Config, stored iter.Seq[model.Record]) (*state, error) {
	n, err := newNaming(c)
	if err != nil {
		return nil, err
	}
	rules, err := c.rules()
	if err != nil {
		return nil, err
	}
	s := &state{
		config: c, rules: rules, naming: n, order: n.order, perVersion: perVersion(c),
		entries: map[Key]*entry{}, units: map[Identity]*unit{}, before: map[string][]knownPort{}, dirty: map[Identity]bool{},
	}
	for rec := range stored {
		if spec, ok := rec.Spec.(model.Service); ok {
			s.before[rec.Place] = knownPorts(spec)
			s.remember(rec.Place)
		}
	}
	s.sort()
	return s, nil
}

// remember adds a stored service. To count as gone, it needs as many lists as a
// service seen by this process.
func (s *state) remember(place string) {
	i, ok := identityOf(place)
	if ok && ignores(i.Service, false) != "" {
		s.disowned = append(s.disowned, place)
		return
	}
	if ok && i.Project == s.config.Project && (i.Version != "") == s.perVersion && s.order.wants(i.key()) {
		s.add(i)
	}
}

// Services that the registry lists of itself, and the service that the earlier
// bridge, servicecomb-service-center-istio, registers in each app to receive events.
// It has no instances.
const itself, itselfOld, earlierBridge = "SERVICECENTER", "SERVICE-CENTER", "servicecenter-watcher"

// ignores returns the name under which an ignored service is counted; empty if it is mirrored.
func ignores(service string, watcher bool) string {
	switch {
	case service == itself || service == itselfOld:
		return ignoredItself
	case service == earlierBridge:
		return ignoredBridge
	case watcher:
		return ignoredWatcher
	}
	return ""
}

// Names under which ignored entries of a list are counted.
const (
	ignoredItself  = "the registry itself"
	ignoredWatcher = "consumer of a watch"
	ignoredBridge  = "consumer of the earlier bridge"
	ignoredBroken  = "list entry without app or name"
)

// list applies a list of the registry: new services, and missing ones.
func (s *state) list(answer listAnswer) {
	present := make(map[Identity]bool, len(s.units))
	s.ids = make(map[string]Key, len(answer.services))
	s.members = make([]listed, 0, len(answer.services))
	s.ignored = map[string]int{}
	count := func(what string, n int) {
		if n > 0 {
			s.ignored[what] += n
		}
	}
	count(ignoredBroken, answer.broken)
	for _, l := range answer.services {
		switch as := ignores(l.Service, l.watcher); {
		case as != "":
			count(as, 1)
		case s.order.wants(l.Key):
			present[s.identify(l.Key, l.version)] = true
			s.ids[l.id] = l.Key
			s.members = append(s.members, l)
		}
	}
	changed := false
	for i := range present {
		changed = s.add(i) || changed
	}
	for i, u := range s.units {
		if present[i] {
			u.missing = 0
		} else {
			u.missing++
		}
	}
	if changed {
		s.sort()
	}
}

func (s *state) identify(k Key, version string) Identity {
	i := Identity{Project: s.config.Project, Environment: k.Environment, App: k.App, Service: k.Service}
	if s.perVersion {
		i.Version = version
	}
	return i
}

// add adds a service, and reports whether it is new.
func (s *state) add(i Identity) bool {
	if s.units[i] != nil {
		return false
	}
	s.units[i] = &unit{ports: s.before[i.place()]}
	s.dirty[i] = true
	e := s.entries[i.key()]
	if e == nil {
		e = &entry{}
		s.entries[i.key()] = e
	}
	e.units = append(e.units, i)
	return true
}

// sort orders the keys, after some came or went.
func (s *state) sort() {
	s.keys = slices.SortedFunc(maps.Keys(s.entries), Key.compare)
	s.unnamed = true
}

// rename names all services anew, after some came or went. A service without any
// known data takes no part yet, so that it takes no name from a serving one.
func (s *state) rename() {
	if !s.unnamed {
		return
	}
	s.unnamed = false
	was, all := s.called, make([]Identity, 0, len(s.units))
	for i := range s.units {
		if s.entries[i.key()].known || s.before[i.place()] != nil {
			all = append(all, i)
		}
	}
	s.called = s.naming.assign(all)
	for i := range s.units {
		if s.called.of[i] != was.of[i] || s.called.rejected[i] != was.rejected[i] {
			s.dirty[i] = true
		}
	}
	s.moved = append(s.moved, moves(was, s.called)...)
}
