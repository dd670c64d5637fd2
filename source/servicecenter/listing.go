package servicecenter

import (
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
)

// age marks services with a port that is due to be dropped.
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

// changes returns a listing of the changed services, and whether there are any.
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

// everything returns a listing of the whole registry.
func (s *state) everything(now time.Time) source.Listing {
	var listing source.Listing
	for _, i := range slices.SortedFunc(maps.Keys(s.units), order{}.compare) {
		s.enter(&listing, i, now)
	}
	s.reportRemoved(&listing)
	listing.Removed = append(listing.Removed, s.disowned...)
	return s.withIgnored(listing)
}

// reportRemoved adds a gone service to Removed if it is the only one and others
// remain: the registry denied it by name. Many services that end together are a drop.
// The last service is one, too, for an emptied registry also denies it by name.
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

// settle clears the pending changes, once they are stored.
func (s *state) settle() {
	clear(s.dirty)
	s.gone, s.moved, s.disowned = nil, nil, nil
}

// enter adds the records of a service to a listing.
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
		// The service came and went between list and find, or is coming: no record is kept.
	case reason != "":
		// Without a reference, every record of the place stays.
		listing.Rejected = append(listing.Rejected, source.Rejection{Place: i.place(), Object: i.object(), Where: i.place(), Reason: reason})
	default:
		c := convert(i, s.called.of[i], s.instances(i, e), u.ports, s.rules, now)
		u.ports, u.left, u.due = c.ports, c.left, portsDue(c.ports, s.rules.portGrace)
		listing.Objects = append(listing.Objects, c.object)
		listing.Rejected = append(listing.Rejected, c.rejected...)
	}
}

// instances returns the instances of a service among the instances of its key.
func (s *state) instances(i Identity, e *entry) []Instance {
	if !s.perVersion {
		return s.current(e)
	}
	return slices.DeleteFunc(slices.Clone(s.current(e)), func(o Instance) bool { return o.Version != i.Version })
}
