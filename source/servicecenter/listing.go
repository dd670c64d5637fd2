package servicecenter

import (
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
)

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
	s.rename()
	s.age(now)
	return len(s.dirty) > 0 || len(s.gone) > 0
}

// changes is a listing of what is to be listed again, and changed whether that
// is anything. What was read counts as delivered.
func (s *state) changes(now time.Time) (listing source.Listing, changed bool) {
	changed = s.pending(now)
	listing.Places = []string{}
	for _, i := range slices.SortedFunc(maps.Keys(s.dirty), order{}.compare) {
		listing.Places = append(listing.Places, i.place())
		s.enter(&listing, i, now)
	}
	s.reportRemoved(&listing)
	listing.Places = append(listing.Places, s.gone...)
	return s.withIgnored(listing), changed
}

// everything is a listing of the whole registry.
func (s *state) everything(now time.Time) source.Listing {
	var listing source.Listing
	for _, i := range slices.SortedFunc(maps.Keys(s.units), order{}.compare) {
		s.enter(&listing, i, now)
	}
	s.reportRemoved(&listing)
	listing.Removed = append(listing.Removed, s.disowned...)
	return s.withIgnored(listing)
}

// reportRemoved says that the registry itself reported the end of a service, if it is a
// single one of several: it was denied by name. Many that end together are a
// drop, and so is the last one, for an emptied registry denies that by name, too.
func (s *state) reportRemoved(listing *source.Listing) {
	if len(s.gone) == 1 && len(s.units) > 0 {
		listing.Removed = slices.Clone(s.gone)
	}
}

func (s *state) withIgnored(listing source.Listing) source.Listing {
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
	s.gone, s.moved, s.disowned = nil, nil, nil
}

// enter adds what becomes of a service to a listing.
func (s *state) enter(listing *source.Listing, i Identity, now time.Time) {
	u, e := s.units[i], s.entries[i.key()]
	reason := e.trouble
	if reason == "" && !e.known {
		reason = "it has not been found yet; it is asked for every round"
	}
	switch rejectedName := s.called.rejected[i]; {
	case rejectedName != "":
		listing.Rejected = append(listing.Rejected, rejection(i, rejectedName))
	case !e.known && e.denials == 1 && s.before[i.place()] == nil:
		// It came and went between list and find, or is coming: there is nothing to keep.
	case reason != "":
		// Without a reference, everything that stands in the place stays.
		listing.Rejected = append(listing.Rejected, source.Rejection{Place: i.place(), Object: i.object(), Where: i.place(), Reason: reason})
	default:
		c := convert(i, s.called.of[i], s.instances(i, e), u.ports, s.rules, now)
		u.ports, u.left, u.due = c.ports, c.left, portsDue(c.ports, s.rules.portGrace)
		listing.Objects = append(listing.Objects, c.object)
		listing.Rejected = append(listing.Rejected, c.rejected...)
	}
}

// instances are those of a service among those of its key.
func (s *state) instances(i Identity, e *entry) []Instance {
	if !s.perVersion {
		return s.current(e)
	}
	return slices.DeleteFunc(slices.Clone(s.current(e)), func(o Instance) bool { return o.Version != i.Version })
}
