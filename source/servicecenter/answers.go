package servicecenter

import (
	"fmt"
	"maps"
	"slices"
)

// patience is the number of finds that may deny a listed service before the status
// reports it: fewer are nearly always a race.
const patience = 2

// asks returns the keys to find: all of them, each with its known revision. With
// anew, no revision is sent.
func (s *state) asks(anew bool) []ask {
	all := make([]ask, len(s.keys))
	for n, k := range s.keys {
		all[n] = ask{k, s.entries[k].rev}
		if anew {
			all[n].rev = ""
		}
	}
	return all
}

// asksFor returns the asks for the keys that an event named. Keys that no list has
// named yet are left to the next list.
func (s *state) asksFor(keys map[Key]bool) []ask {
	var some []ask
	for _, k := range slices.SortedFunc(maps.Keys(keys), Key.compare) {
		if e := s.entries[k]; e != nil {
			some = append(some, ask{k, e.rev})
		}
	}
	return some
}

// answer takes the answers of a find.
func (s *state) answer(asked []ask, answers []found) {
	for n, a := range asked {
		if e := s.entries[a.Key]; e != nil {
			s.take(a, e, answers[n])
		}
	}
	s.dropMissing()
}

// fail notes that keys could not be found, all for one reason.
func (s *state) fail(asked []ask, err error) {
	for _, a := range asked {
		if e := s.entries[a.Key]; e != nil {
			s.trouble(e, err.Error())
		}
	}
}

func (s *state) take(a ask, e *entry, f found) {
	if denied(f.err) {
		e.denials++
		if s.listed(e) && e.denials >= patience {
			s.trouble(e, "the registry lists the service and does not find it; it is asked again every round")
		}
		return
	}
	e.denials = 0
	switch owner, foreign := s.foreign(a.Key, f.instances); {
	case f.err != nil:
		s.trouble(e, f.err.Error())
	case f.same && a.rev == "":
		e.rev = ""
		s.trouble(e, "the registry says that nothing changed since a revision that was not named")
	case f.same:
		s.trouble(e, "")
	case foreign:
		s.trouble(e, fmt.Sprintf("the registry answers with instances of %s/%s/%s", owner.Environment, owner.App, owner.Service))
	default:
		s.unnamed = s.unnamed || !e.known
		if f.rev != e.rev {
			e.direct, e.changed = nil, e.known
		}
		e.rev, e.instances, e.known, e.trouble = f.rev, f.instances, true, ""
		s.touch(e)
	}
}

// foreign reports whether an answer has instances that belong to another key, as far
// as the list shows.
func (s *state) foreign(k Key, instances []Instance) (Key, bool) {
	for _, i := range instances {
		if owner, ok := s.ids[i.ServiceID]; ok && owner != k {
			return owner, true
		}
	}
	return Key{}, false
}

// trouble notes why the data of a key may be old, or that it is not.
func (s *state) trouble(e *entry, reason string) {
	if e.trouble != reason {
		e.trouble = reason
		s.touch(e)
	}
}

func (s *state) touch(e *entry) {
	for _, i := range e.units {
		s.dirty[i] = true
	}
}

// listed reports whether the last list named any version of a key.
func (s *state) listed(e *entry) bool {
	return slices.ContainsFunc(e.units, func(i Identity) bool { return s.units[i].missing == 0 })
}

// finds reports whether the last find knew a service. One of several versions is
// known by its instances.
func (s *state) finds(i Identity, e *entry) bool {
	if !s.listed(e) {
		return e.denials == 0
	}
	return len(s.instances(i, e)) > 0
}

// dropMissing drops services that enough lists in a row lacked, and that a find does
// not know either: a list that lacks a service that can be found is wrong.
func (s *state) dropMissing() {
	changed := false
	for i, u := range s.units {
		if u.missing < goneAfter {
			continue
		}
		e := s.entries[i.key()]
		if s.finds(i, e) {
			continue
		}
		changed = true
		delete(s.units, i)
		delete(s.dirty, i)
		s.gone = append(s.gone, i.place())
		e.units = slices.DeleteFunc(e.units, func(o Identity) bool { return o == i })
		if len(e.units) == 0 {
			delete(s.entries, i.key())
		}
	}
	if changed {
		s.sort()
	}
}
