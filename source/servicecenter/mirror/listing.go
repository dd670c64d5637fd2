package mirror

import (
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/servicecenter/records"
	"github.com/isthmus-mesh/isthmus/source/servicecenter/registry"
)

// Pending reports whether anything is to be listed again.
func (s *State) Pending(now time.Time) bool {
	s.rename()
	for i, u := range s.units {
		if !u.due.IsZero() && !now.Before(u.due) {
			s.dirty[i] = true
		}
	}
	return len(s.dirty) > 0 || len(s.gone) > 0
}

// Changes returns a listing of the changed services, and whether there are any.
func (s *State) Changes(now time.Time) (listing model.Listing, changed bool) {
	changed = s.Pending(now)
	listing.Places = []string{}
	for _, i := range slices.SortedFunc(maps.Keys(s.dirty), records.Identity.Compare) {
		listing.Places = append(listing.Places, i.Place())
		s.enter(&listing, i, now)
	}
	s.reportRemoved(&listing)
	listing.Places = append(listing.Places, s.gone...)
	return s.withIgnored(listing), changed
}

// Everything returns a listing of the whole registry.
func (s *State) Everything(now time.Time) model.Listing {
	var listing model.Listing
	for _, i := range slices.SortedFunc(maps.Keys(s.units), records.Identity.Compare) {
		s.enter(&listing, i, now)
	}
	s.reportRemoved(&listing)
	listing.Removed = append(listing.Removed, s.orphaned...)
	return s.withIgnored(listing)
}

// Moved returns the names that have passed to another service since the last listing.
func (s *State) Moved() []records.Move { return s.moved }

// Settle clears the pending changes, once they are stored.
func (s *State) Settle() {
	clear(s.dirty)
	s.gone, s.moved, s.orphaned = nil, nil, nil
}

// rename names all services anew, after some came or went. A service without any
// known data takes no part yet, so that it takes no name from a serving one.
func (s *State) rename() {
	if !s.unnamed {
		return
	}
	s.unnamed = false
	was, all := s.names, make([]records.Identity, 0, len(s.units))
	for i := range s.units {
		if s.finds.entries[i.Key()].known || s.before[i.Place()] != nil {
			all = append(all, i)
		}
	}
	s.names = s.naming.Assign(all)
	for i := range s.units {
		if s.names.Of[i] != was.Of[i] || s.names.Rejected[i] != was.Rejected[i] {
			s.dirty[i] = true
		}
	}
	s.moved = append(s.moved, records.Moves(was, s.names)...)
}

// reportRemoved adds a gone service to Removed if it is the only one and others
// remain: the registry denied it by name. Many services that end together are a drop.
// The last service is one, too, for an emptied registry also denies it by name.
func (s *State) reportRemoved(listing *model.Listing) {
	if len(s.gone) == 1 && len(s.units) > 0 {
		listing.Removed = slices.Clone(s.gone)
	}
}

func (s *State) withIgnored(listing model.Listing) model.Listing {
	listing.Ignored = maps.Clone(s.ignored)
	left := 0
	for _, u := range s.units {
		left += u.left
	}
	if left > 0 {
		listing.Ignored[records.IgnoredProperties] = left
	}
	return listing
}

// enter adds the records of a service to a listing.
func (s *State) enter(listing *model.Listing, i records.Identity, now time.Time) {
	u, e := s.units[i], s.finds.entries[i.Key()]
	reason := e.trouble
	if reason == "" && !e.known {
		reason = "it has not been found yet; it is asked for every round"
	}
	switch rejectedName := s.names.Rejected[i]; {
	case rejectedName != "":
		listing.Rejected = append(listing.Rejected, records.Rejection(i, rejectedName))
	case !e.known && e.denials == 1 && s.before[i.Place()] == nil:
		// The service came and went between list and find, or is coming: no record is kept.
	case reason != "":
		// Without a reference, every record of the place stays.
		listing.Rejected = append(listing.Rejected, model.Rejection{Place: i.Place(), Object: i.Object(), Where: i.Place(), Reason: reason})
	default:
		c := s.rules.Convert(i, s.names.Of[i], s.instances(i, e), u.ports, now)
		u.ports, u.left, u.due = c.Ports, c.Left, s.rules.PortsDue(c.Ports)
		listing.Objects = append(listing.Objects, c.Object)
		listing.Rejected = append(listing.Rejected, c.Rejected...)
	}
}

// Graph returns the records made of the graph of consumers and providers: for each
// consumer with a name in the mesh, its providers with a name. If scopes are
// configured, they are added, with notices for consumers that get none.
func (s *State) Graph(edges []registry.Edge, scoping *records.Scoping) ([]model.Object, []model.Notice) {
	s.rename()
	providers, scoped := records.Uses{}, records.Uses{}
	for _, e := range edges {
		consumer, provider := s.rules.Identify(e.Consumer.Key, e.Consumer.Version), s.rules.Identify(e.Provider.Key, e.Provider.Version)
		name, ok := s.names.Of[provider]
		if _, known := s.names.Of[consumer]; !ok || !known {
			continue
		}
		providers.Add(consumer, name)
		scoped.Add(scoping.Identify(consumer, e.Consumer.Version), name)
	}
	objects := records.Consumptions(providers, s.names.Of)
	if scoping == nil {
		return objects, nil
	}
	scopes, notices := scoping.Objects(s.consumers(scoping), scoped)
	return append(objects, scopes...), notices
}

// consumers returns the services with a name, as scopes distinguish them, each with
// its name.
func (s *State) consumers(scoping *records.Scoping) map[records.Identity]records.Name {
	all := make(map[records.Identity]records.Name, len(s.names.Of))
	for _, l := range s.members {
		i := s.rules.Identify(l.Key, l.Version)
		if name, ok := s.names.Of[i]; ok {
			all[scoping.Identify(i, l.Version)] = name
		}
	}
	return all
}
