package machines

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// list makes a listing of all known services and machines.
func (s *Source) list(services []located, rejected []model.Rejection) *model.Listing {
	listing := &model.Listing{Observed: time.Now(), Rejected: rejected, Ignored: map[string]int{}}
	is := &stored{read: s.options.Stored}
	for _, one := range services {
		s.enter(one, is, listing)
	}
	for _, g := range slices.SortedFunc(maps.Keys(s.mirror), Group.Compare) {
		s.mirror[g].report(g, listing)
	}
	return listing
}

// enter adds a service to a listing. A service with groups that were never read is
// rejected whole, so that its stored records stay. If no record is stored, the
// machines of its other groups are better than none. The service stays partial until
// all its groups are read.
func (s *Source) enter(one located, is *stored, listing *model.Listing) {
	unread, reason := s.mirror.unread(one.groups)
	switch ref := one.Ref(); {
	case len(unread) == 0:
		delete(s.partial, ref)
	case len(unread) < len(one.groups) && (s.partial[ref] || !is.mayHave(ref)):
		s.partial[ref] = true
		for _, g := range unread {
			listing.Rejected = append(listing.Rejected, model.Rejection{
				Place: g.String(), Object: g.String(), Where: one.Where,
				Reason: fmt.Sprintf("has not been read since the start: %v; the service %s/%s has the machines of its other resources", cmp.Or(s.mirror.of(g).err, errUnasked), one.Namespace, one.Host),
			})
		}
	default:
		listing.Rejected = append(listing.Rejected, model.Rejection{
			Ref: ref, Place: one.Place, Object: "Service " + one.Namespace + "/" + one.Host, Where: one.Where,
			Reason: fmt.Sprintf("%s has not been read since the start: %v", unread[0], reason),
		})
		return
	}
	o, left := one.object(s.mirror.machines(one.groups), is)
	listing.Objects = append(listing.Objects, o)
	if left > 0 {
		listing.Ignored["tag that cannot be a label"] += left
	}
}

// stored caches the stored records of the source, read once and on first use.
type stored struct {
	read  func() iter.Seq[model.Record]
	specs map[model.Ref]model.Spec
}

// mayHave reports whether a record is stored, or cannot be looked up.
func (s *stored) mayHave(ref model.Ref) bool {
	_, has := s.of(ref)
	return has || s.read == nil
}

// of returns the stored spec of a record, named without its source.
func (s *stored) of(ref model.Ref) (model.Spec, bool) {
	if s.specs == nil && s.read != nil {
		s.specs = map[model.Ref]model.Spec{}
		for r := range s.read() {
			r.Source = ""
			s.specs[r.Ref] = r.Spec
		}
	}
	spec, has := s.specs[ref]
	return spec, has
}

// health returns the health of an endpoint on a machine. If the cloud has not
// reported one since the start, the health stored by an earlier run counts.
func (s *stored) health(of Machine, ref model.Ref) model.Health {
	if of.State != Unknown {
		return of.health()
	}
	spec, _ := s.of(ref)
	if e, is := spec.(model.Endpoint); is {
		return e.Health
	}
	return of.health()
}
