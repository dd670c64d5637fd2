package machines

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// list makes a listing of everything that is known.
func (s *Source) list(services []located, rejected []source.Rejection) *source.Listing {
	listing := &source.Listing{Observed: time.Now(), Rejected: rejected, Ignored: map[string]int{}}
	is := &stored{read: s.options.Stored}
	for _, one := range services {
		s.enter(one, is, listing)
	}
	for _, g := range slices.SortedFunc(maps.Keys(s.mirror), Group.Compare) {
		s.mirror[g].report(g, listing)
	}
	return listing
}

// enter puts a service into a listing. One with groups that were never read is rejected
// whole, so that what is stored of it stays. If nothing is, the machines of its other
// groups are better than none; it stays like that until those groups are read.
func (s *Source) enter(one located, is *stored, listing *source.Listing) {
	unread, reason := s.mirror.unread(one.groups)
	switch ref := one.Ref(); {
	case len(unread) == 0:
		delete(s.partial, ref)
	case len(unread) < len(one.groups) && (s.partial[ref] || !is.mayHave(ref)):
		s.partial[ref] = true
		for _, g := range unread {
			listing.Rejected = append(listing.Rejected, source.Rejection{
				Place: g.String(), Object: g.String(), Where: one.Where,
				Reason: fmt.Sprintf("has not been read since the start: %v; the service %s/%s has the machines of its other resources", cmp.Or(s.mirror.of(g).err, errUnasked), one.Namespace, one.Host),
			})
		}
	default:
		listing.Rejected = append(listing.Rejected, source.Rejection{
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

// stored is what is stored of the source. It is read if it is asked for, and then once.
type stored struct {
	read  func() iter.Seq[model.Record]
	specs map[model.Ref]model.Spec
}

// mayHave reports whether a record is stored, or that cannot be found out.
func (s *stored) mayHave(ref model.Ref) bool {
	_, has := s.of(ref)
	return has || s.read == nil
}

// of is what a record says, named without its source.
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

// health is that of an endpoint on a machine. Where the cloud has not said it since the
// start, it is as an earlier run has stored it.
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
