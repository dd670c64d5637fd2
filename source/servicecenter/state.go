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

// state is what is known of the registry, and how answers change it. It asks
// nothing itself.
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
	ids     map[string]Key         // whose the registry's service ids are
	members []listed               // of the list that are mirrored
	ignored map[string]int         // of the list

	dirty map[Identity]bool // what is to be listed again
	gone  []string          // places whose services are gone since they were listed last
	moved []move            // names that another service has since then

	directly directness

	disowned []string // places of what is stored and is no service of anybody
}

// entry is what is known of a key.
type entry struct {
	units     []Identity
	rev       string
	instances []Instance
	known     bool   // it has been found
	trouble   string // why what is known may be old; empty if it is not
	denials   int    // finds in a row that say that there is no such service

	direct  *direct // what was found without the registry's cache; nil if that shows the same
	changed bool    // what it shows, since it was last found directly
	turn    uint64  // when it was
}

// unit is what becomes one service of the mesh: all versions of a key, or one.
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

// remember takes in a service that is stored, so that it takes as much to
// count it as gone as if this process had seen it.
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

// The services that the registry lists of itself, and the one that the earlier
// bridge, servicecomb-service-center-istio, registers in each app in order to be
// sent events. It has no instances.
const itself, itselfOld, earlierBridge = "SERVICECENTER", "SERVICE-CENTER", "servicecenter-watcher"

// ignores says as what a service is left out that is nobody's; empty if it is not.
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

// Under these words are counted the entries of a list that are none of our business.
const (
	ignoredItself  = "the registry itself"
	ignoredWatcher = "consumer of a watch"
	ignoredBridge  = "consumer of the earlier bridge"
	ignoredBroken  = "list entry without app or name"
)

// list takes a list of the registry: what is new, and what is missing.
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

// add takes in a service that was not there, and reports whether it was not.
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

// sort puts the keys in order, after some came or went.
func (s *state) sort() {
	s.keys = slices.SortedFunc(maps.Keys(s.entries), Key.compare)
	s.unnamed = true
}

// rename names all services anew, after some came or went. One of which nothing
// is known takes no part yet, so that it takes no name from one that serves.
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
