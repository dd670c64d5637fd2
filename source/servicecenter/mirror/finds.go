package mirror

import (
	"fmt"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/source/servicecenter/registry"
)

// finds holds the instances of each key, as the finds of the registry answer.
type finds struct {
	entries map[registry.Key]*entry
	keys    []registry.Key          // of entries, in order
	ids     map[string]registry.Key // keys by the registry's service ids
	direct  directFinds
}

// entry is the known state of a key.
type entry struct {
	rev       string
	instances []registry.Instance
	known     bool   // the key has been found
	trouble   string // why the state may be old; empty if it is not
	denials   int    // finds in a row that report no such service
	listed    bool   // the last list named a version of the key

	direct  *direct // result of a direct find; nil if the registry's cache shows the same
	changed bool    // the cached state, since the last direct find
	turn    uint64  // of the last direct find
}

// add adds a key, which counts as listed until a list lacks it.
func (s *finds) add(k registry.Key) {
	if s.entries[k] == nil {
		s.entries[k] = &entry{listed: true}
	}
}

// sort orders the keys, after some came or went.
func (s *finds) sort() {
	s.keys = slices.SortedFunc(maps.Keys(s.entries), registry.Key.Compare)
}

// asks returns the keys to find: all of them, each with its known revision. With
// anew, no revision is sent.
func (s *finds) asks(anew bool) []registry.Ask {
	all := make([]registry.Ask, len(s.keys))
	for n, k := range s.keys {
		all[n] = registry.Ask{Key: k, Rev: s.entries[k].rev}
		if anew {
			all[n].Rev = ""
		}
	}
	return all
}

// asksFor returns the asks for some keys. Keys that no list has named yet are left to
// the next list.
func (s *finds) asksFor(keys map[registry.Key]bool) []registry.Ask {
	var some []registry.Ask
	for _, k := range slices.SortedFunc(maps.Keys(keys), registry.Key.Compare) {
		if e := s.entries[k]; e != nil {
			some = append(some, registry.Ask{Key: k, Rev: e.rev})
		}
	}
	return some
}

// answer takes the answers of a find. It returns the changed keys, and whether any of
// them is known for the first time.
func (s *finds) answer(asked []registry.Ask, found []registry.Found) (changed []registry.Key, first bool) {
	for n, a := range asked {
		e := s.entries[a.Key]
		if e == nil {
			continue
		}
		was := e.known
		if s.take(a, e, found[n]) {
			changed = append(changed, a.Key)
		}
		first = first || e.known != was
	}
	return changed, first
}

// fail notes that keys could not be found, all for one reason, and returns the changed
// keys.
func (s *finds) fail(asked []registry.Ask, err error) (changed []registry.Key) {
	for _, a := range asked {
		if e := s.entries[a.Key]; e != nil && e.note(err.Error()) {
			changed = append(changed, a.Key)
		}
	}
	return changed
}

// denialsNoted is the number of finds that may deny a listed service before the status
// reports it: fewer are nearly always a race.
const denialsNoted = 2

// take takes one answer, and reports whether the entry has changed.
func (s *finds) take(a registry.Ask, e *entry, f registry.Found) (changed bool) {
	if registry.IsNoService(f.Err) {
		e.denials++
		return e.listed && e.denials >= denialsNoted &&
			e.note("the registry lists the service and does not find it; it is asked again every round")
	}
	denied, trouble := e.denials > 0, ""
	e.denials = 0
	switch owner, foreign := s.foreign(a.Key, f.Instances); {
	case f.Err != nil:
		trouble = f.Err.Error()
	case f.Same && a.Rev == "":
		e.rev, trouble = "", "the registry says that nothing changed since a revision that was not named"
	case f.Same:
	case foreign:
		trouble = fmt.Sprintf("the registry answers with instances of %s/%s/%s", owner.Environment, owner.App, owner.Service)
	default:
		e.find(f)
		return true
	}
	return e.note(trouble) || denied // while it was denied, it may have been listed without its trouble
}

// find takes the instances of a key.
func (e *entry) find(f registry.Found) {
	if f.Rev != e.rev {
		e.direct, e.changed = nil, e.known
	}
	e.rev, e.instances, e.known, e.trouble = f.Rev, f.Instances, true, ""
}

// note notes why the data of a key may be old, or that it is not, and reports whether
// that is new.
func (e *entry) note(trouble string) bool {
	changed := e.trouble != trouble
	e.trouble = trouble
	return changed
}

// foreign reports whether an answer has instances that belong to another key, as far
// as the list shows.
func (s *finds) foreign(k registry.Key, instances []registry.Instance) (registry.Key, bool) {
	for _, i := range instances {
		if owner, ok := s.ids[i.ServiceID]; ok && owner != k {
			return owner, true
		}
	}
	return registry.Key{}, false
}

// current returns the instances of a key: the directly found ones if they are known.
// If their loss is suspicious, the cached instances are added.
func (s *finds) current(e *entry) []registry.Instance {
	switch {
	case e.direct == nil:
		return e.instances
	case !s.direct.cautious:
		return e.direct.instances
	}
	all := slices.Clone(e.direct.instances)
	for _, i := range e.instances {
		if !slices.ContainsFunc(e.direct.instances, func(o registry.Instance) bool { return o.ID == i.ID }) {
			all = append(all, i)
		}
	}
	return all
}
