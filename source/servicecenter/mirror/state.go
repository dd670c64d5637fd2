package mirror

import (
	"iter"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/servicecenter/records"
	"github.com/isthmus-mesh/isthmus/source/servicecenter/registry"
)

// goneAfter is how many lists in a row must lack a service.
const goneAfter = 2

// State is the known state of the registry, updated by answers. It makes no requests.
type State struct {
	rules  records.Rules
	naming *records.Naming
	finds  finds

	units    map[records.Identity]*unit
	versions map[registry.Key][]records.Identity // units by the key that finds them
	names    records.Names
	unnamed  bool                      // services have come or gone since they were named
	before   map[string][]records.Port // ports by place, as stored before the first listing
	members  []registry.Service        // mirrored services of the list
	ignored  map[string]int            // of the list

	dirty    map[records.Identity]bool // services to be listed again
	gone     []string                  // places of services that are gone since the last listing
	moved    []records.Move            // names that another service has since then
	orphaned []string                  // places of stored records that are no mirrored service
}

// unit is one service of the mesh: all versions of a key, or one.
type unit struct {
	missing int // lists in a row that lack it
	ports   []records.Port
	due     time.Time // when a port is to be dropped; zero if none is
	left    int       // properties that cannot be labels
}

// New returns a state that knows the stored services, and nothing of their instances.
func New(rules records.Rules, stored iter.Seq[model.Record]) *State {
	s := &State{
		rules: rules, naming: records.NewNaming(rules), finds: finds{entries: map[registry.Key]*entry{}},
		units: map[records.Identity]*unit{}, versions: map[registry.Key][]records.Identity{},
		before: map[string][]records.Port{}, dirty: map[records.Identity]bool{},
	}
	for rec := range stored {
		if spec, ok := rec.Spec.(model.Service); ok {
			s.before[rec.Place] = records.KnownPorts(spec)
			s.remember(rec.Place)
		}
	}
	s.sort()
	return s
}

// remember adds a stored service. To count as gone, it needs as many lists as a
// service seen by this process.
func (s *State) remember(place string) {
	i, ok := records.ParseIdentity(place)
	if ok && ignores(i.Service, false) != "" {
		s.orphaned = append(s.orphaned, place)
		return
	}
	if ok && s.rules.Owns(i) {
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

// List applies a list of the registry: new services, and missing ones.
func (s *State) List(list registry.List) {
	present := make(map[records.Identity]bool, len(s.units))
	s.finds.ids = make(map[string]registry.Key, len(list.Services))
	s.members = make([]registry.Service, 0, len(list.Services))
	s.ignored = map[string]int{}
	if list.Broken > 0 {
		s.ignored[ignoredBroken] = list.Broken
	}
	for _, l := range list.Services {
		switch as := ignores(l.Service, l.Watcher); {
		case as != "":
			s.ignored[as]++
		case s.rules.Wants(l.Key):
			present[s.rules.Identify(l.Key, l.Version)] = true
			s.finds.ids[l.ID] = l.Key
			s.members = append(s.members, l)
		}
	}
	changed := false
	for i := range present {
		changed = s.add(i) || changed
	}
	for _, e := range s.finds.entries {
		e.listed = false
	}
	for i, u := range s.units {
		if present[i] {
			u.missing = 0
			s.finds.entries[i.Key()].listed = true
		} else {
			u.missing++
		}
	}
	if changed {
		s.sort()
	}
}

// add adds a service, and reports whether it is new.
func (s *State) add(i records.Identity) bool {
	if s.units[i] != nil {
		return false
	}
	s.units[i] = &unit{ports: s.before[i.Place()]}
	s.dirty[i] = true
	s.finds.add(i.Key())
	s.versions[i.Key()] = append(s.versions[i.Key()], i)
	return true
}

// sort orders the keys, after some services came or went.
func (s *State) sort() {
	s.finds.sort()
	s.unnamed = true
}

// Keys returns the keys of all services, in order.
func (s *State) Keys() []registry.Key { return s.finds.keys }

// Asks returns the keys to find: all of them, each with its known revision. With
// anew, no revision is sent.
func (s *State) Asks(anew bool) []registry.Ask { return s.finds.asks(anew) }

// AsksFor returns the asks for the keys that an event named. Keys that no list has
// named yet are left to the next list.
func (s *State) AsksFor(keys map[registry.Key]bool) []registry.Ask { return s.finds.asksFor(keys) }

// Answer takes the answers of a find.
func (s *State) Answer(asked []registry.Ask, found []registry.Found) {
	changed, first := s.finds.answer(asked, found)
	s.unnamed = s.unnamed || first
	s.touch(changed)
	s.dropMissing()
}

// Fail notes that keys could not be found, all for one reason.
func (s *State) Fail(asked []registry.Ask, err error) { s.touch(s.finds.fail(asked, err)) }

// AsksDirect returns the keys to find without the registry's cache, in a round that
// has kept the registry busy for some time already; none if that is not due.
func (s *State) AsksDirect(poll, busy time.Duration, now time.Time) []registry.Ask {
	if now.Before(s.finds.direct.due) {
		return nil
	}
	return s.finds.asksDirect(s.finds.direct.limit(poll, busy))
}

// AnswerDirect takes the answers of a direct find, and reports whether they begin to
// be suspicious.
func (s *State) AnswerDirect(asked []registry.Ask, found []registry.Found, took time.Duration) (begins bool) {
	s.finds.direct.succeeded(took, len(asked))
	changed, begins := s.finds.answerDirect(asked, found)
	s.touch(changed)
	return begins
}

// FailDirect notes that a direct find failed. The next one waits.
func (s *State) FailDirect(asked []registry.Ask, took time.Duration, now time.Time) {
	s.finds.direct.failed(took, len(asked), now)
}

// touch marks the services of keys to be listed again.
func (s *State) touch(keys []registry.Key) {
	for _, k := range keys {
		for _, i := range s.versions[k] {
			s.dirty[i] = true
		}
	}
}

// dropMissing drops services that enough lists in a row lacked, and that a find does
// not know either: a list that lacks a service that can be found is wrong.
func (s *State) dropMissing() {
	changed := false
	for i, u := range s.units {
		k := i.Key()
		if u.missing < goneAfter || s.found(i, s.finds.entries[k]) {
			continue
		}
		changed = true
		delete(s.units, i)
		delete(s.dirty, i)
		s.gone = append(s.gone, i.Place())
		s.versions[k] = slices.DeleteFunc(s.versions[k], func(o records.Identity) bool { return o == i })
		if len(s.versions[k]) == 0 {
			delete(s.versions, k)
			delete(s.finds.entries, k)
		}
	}
	if changed {
		s.sort()
	}
}

// found reports whether the last find knew a service. One of several versions is
// known by its instances.
func (s *State) found(i records.Identity, e *entry) bool {
	if !e.listed {
		return e.denials == 0
	}
	return len(s.instances(i, e)) > 0
}

// instances returns the instances of a service among the instances of its key.
func (s *State) instances(i records.Identity, e *entry) []registry.Instance {
	return s.rules.Of(i, s.finds.current(e))
}
