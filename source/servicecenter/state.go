package servicecenter

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// goneAfter is how many lists in a row must lack a service.
const goneAfter = 2

// patience is how often a find may deny a service that the list names before
// that is worth telling: it is a race nearly always.
const patience = 2

// state is what is known of the registry, and how answers change it. It asks
// nothing itself.
type state struct {
	config     Config
	rules      rules
	naming     *naming
	ranking    ranking
	perVersion bool

	entries map[Key]*entry
	keys    []Key // of entries, in order
	units   map[Identity]*unit
	called  names
	before  map[string][]knownPort // ports by place, as stored before the first listing
	ids     map[string]Key         // whose the registry's service ids are
	ignored map[string]int         // of the list

	dirty map[Identity]bool // what is to be listed again
	gone  []string          // places whose services are gone since they were listed last
}

// entry is what is known of a key.
type entry struct {
	units     []Identity
	rev       string
	instances []Instance
	known     bool   // it has been found
	trouble   string // why what is known may be old; empty if it is not
	denials   int    // finds in a row that say that there is no such service
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
	s := &state{
		config: c, rules: c.rules(), naming: n, ranking: n.ranking, perVersion: perVersion(c),
		entries: map[Key]*entry{}, units: map[Identity]*unit{}, before: map[string][]knownPort{}, dirty: map[Identity]bool{},
	}
	for rec := range stored {
		if spec, ok := rec.Spec.(model.Service); ok {
			s.before[rec.Place] = knownPorts(spec)
			s.remember(rec.Place)
		}
	}
	s.rename()
	return s, nil
}

// remember takes in a service that is stored, so that it takes as much to
// believe that it is gone as if this process had seen it.
func (s *state) remember(place string) {
	i, ok := identityOf(place)
	if ok && i.Project == s.config.Project && (i.Version != "") == s.perVersion && s.ranking.wants(i.key()) {
		s.add(i)
	}
}

// The services that the registry lists of itself.
const itself, itselfOld = "SERVICECENTER", "SERVICE-CENTER"

// Under these words are counted the entries of a list that are none of our business.
const (
	ignoredItself  = "the registry itself"
	ignoredWatcher = "consumer of a watch"
	ignoredBroken  = "list entry without app or name"
)

// list takes a list of the registry: what is new, and what is missing.
func (s *state) list(answer listAnswer) {
	present := make(map[Identity]bool, len(s.units))
	s.ids = make(map[string]Key, len(answer.services))
	s.ignored = map[string]int{}
	count := func(what string, n int) {
		if n > 0 {
			s.ignored[what] += n
		}
	}
	count(ignoredBroken, answer.broken)
	for _, l := range answer.services {
		switch {
		case l.Service == itself || l.Service == itselfOld:
			count(ignoredItself, 1)
		case l.watcher:
			count(ignoredWatcher, 1)
		case s.ranking.wants(l.Key):
			present[s.identify(l.Key, l.version)] = true
			s.ids[l.id] = l.Key
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
		s.rename()
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

// rename names all services anew, after some came or went.
func (s *state) rename() {
	s.keys = slices.SortedFunc(maps.Keys(s.entries), Key.compare)
	was := s.called
	s.called = s.naming.assign(slices.Collect(maps.Keys(s.units)))
	for i := range s.units {
		if s.called.of[i] != was.of[i] || s.called.refused[i] != was.refused[i] {
			s.dirty[i] = true
		}
	}
}

// asks is what to find: everything, each key with the revision that is known
// unless all is to be found anew.
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

// asksFor is what to find of the keys that an event named. Those that no list
// has named yet are left to the next list.
func (s *state) asksFor(keys map[Key]bool) []ask {
	var some []ask
	for _, k := range slices.SortedFunc(maps.Keys(keys), Key.compare) {
		if e := s.entries[k]; e != nil {
			some = append(some, ask{k, e.rev})
		}
	}
	return some
}

// answer takes what was found.
func (s *state) answer(asked []ask, answers []found) {
	for n, a := range asked {
		if e := s.entries[a.Key]; e != nil {
			s.take(a, e, answers[n])
		}
	}
	s.bury()
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
		e.rev, e.instances, e.known, e.trouble = f.rev, f.instances, true, ""
		s.touch(e)
	}
}

// foreign reports whether an answer has instances that belong to another key,
// as far as the list tells.
func (s *state) foreign(k Key, instances []Instance) (Key, bool) {
	for _, i := range instances {
		if owner, ok := s.ids[i.ServiceID]; ok && owner != k {
			return owner, true
		}
	}
	return Key{}, false
}

// trouble notes why what is known of a key may be old, or that it is not.
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

// bury drops the services that lists have lacked often enough. If that is all
// there is of a key, a find must have denied it, too: a list that lacks what can
// be found is not to be believed.
func (s *state) bury() {
	changed := false
	for i, u := range s.units {
		if u.missing < goneAfter {
			continue
		}
		e := s.entries[i.key()]
		if !s.listed(e) && e.denials == 0 {
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
		s.rename()
	}
}

// age marks services of which a port is due to be dropped.
func (s *state) age(now time.Time) {
	for i, u := range s.units {
		if !u.due.IsZero() && !now.Before(u.due) {
			s.dirty[i] = true
		}
	}
}

// pending reports whether anything is to be listed again.
func (s *state) pending(now time.Time) bool {
	s.age(now)
	return len(s.dirty) > 0 || len(s.gone) > 0
}

// changes is a listing of what is to be listed again, and changed whether that
// is anything. What was read is taken as told.
func (s *state) changes(now time.Time) (listing source.Listing, changed bool) {
	changed = s.pending(now)
	listing.Places = []string{}
	for _, i := range slices.SortedFunc(maps.Keys(s.dirty), ranking{}.compare) {
		listing.Places = append(listing.Places, i.place())
		s.enter(&listing, i, now)
	}
	s.buried(&listing)
	listing.Places = append(listing.Places, s.gone...)
	return s.told(listing), changed
}

// everything is a listing of the whole registry.
func (s *state) everything(now time.Time) source.Listing {
	var listing source.Listing
	for _, i := range slices.SortedFunc(maps.Keys(s.units), ranking{}.compare) {
		s.enter(&listing, i, now)
	}
	s.buried(&listing)
	return s.told(listing)
}

// buried says that the registry itself told of the end of a service, if it is a
// single one: it was denied by name. Many that end together are a drop.
func (s *state) buried(listing *source.Listing) {
	if len(s.gone) == 1 {
		listing.Removed = slices.Clone(s.gone)
	}
}

func (s *state) told(listing source.Listing) source.Listing {
	listing.Ignored = maps.Clone(s.ignored)
	left := 0
	for _, u := range s.units {
		left += u.left
	}
	if left > 0 {
		listing.Ignored[ignoredProperties] = left
	}
	return listing
}

// settle forgets what was to be listed, once it is stored.
func (s *state) settle() {
	clear(s.dirty)
	s.gone = nil
}

// enter adds what becomes of a service to a listing.
func (s *state) enter(listing *source.Listing, i Identity, now time.Time) {
	u, e := s.units[i], s.entries[i.key()]
	reason := e.trouble
	if reason == "" && !e.known {
		reason = "it has not been found yet; it is asked for every round"
	}
	switch refusedName := s.called.refused[i]; {
	case refusedName != "":
		listing.Refused = append(listing.Refused, refusal(i, refusedName))
	case !e.known && e.denials == 1 && s.before[i.place()] == nil:
		// It came and went between list and find, or is coming: there is nothing to keep.
	case reason != "":
		// Without a reference, everything that stands in the place stays.
		listing.Refused = append(listing.Refused, source.Refusal{Place: i.place(), Object: i.object(), Where: i.place(), Reason: reason})
	default:
		c := convert(i, s.called.of[i], s.instances(i, e), u.ports, s.rules, now)
		u.ports, u.left, u.due = c.ports, c.left, portsDue(c.ports, s.rules.portGrace)
		listing.Objects = append(listing.Objects, c.object)
		listing.Refused = append(listing.Refused, c.refused...)
	}
}

// instances are those of a service among those of its key.
func (s *state) instances(i Identity, e *entry) []Instance {
	if !s.perVersion {
		return e.instances
	}
	return slices.DeleteFunc(slices.Clone(e.instances), func(o Instance) bool { return o.Version != i.Version })
}
