package catalog

import (
	"cmp"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog/owner"
	"github.com/isthmus-mesh/isthmus/catalog/split"
	"github.com/isthmus-mesh/isthmus/catalog/united"
	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
)

// SplitRecords are the records of the kind Split for a host, whether or not there is a
// service. It is immutable.
type SplitRecords struct {
	Key ServiceKey
	// Records come in the order of their rights: by source, then by age where an API server
	// vouches for it, then by name. The first divides the calls, unless it is left out.
	Records []Contributor

	split *split.Split // of the first record, as without the configuration; nil if it divides nothing
}

// splitting is the builder's state of splits.
type splitting struct {
	*united.Records[ServiceKey, SplitRecords]
	now     immutable.Map[ServiceKey, *SplitRecords]
	backing map[ServiceKey]map[ServiceKey]struct{} // the divided services of each backend
}

// newSplits lets the configuration divide the calls to a host, and otherwise the first of
// the records.
func newSplits(order *merging) *splitting {
	// age is in nanoseconds since 1970; zero unless an API server vouches for it.
	age := func(of *united.Member) int64 {
		spec, _ := of.Spec.(model.Split)
		return order.vouched(of.Ref.Source, of.Path, spec.Created)
	}
	records := united.New(united.Rules[ServiceKey, SplitRecords]{
		Key: func(r *model.Record) (ServiceKey, bool) {
			spec, ok := specOf[model.Split](r)
			return KeyOf(r.Namespace, spec.Host), ok
		},
		Unite: func(key ServiceKey, members []*united.Member) *SplitRecords {
			members = slices.SortedStableFunc(slices.Values(members), func(a, b *united.Member) int {
				return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Ref.Source, b.Ref.Source), owner.CompareAges(age(a), age(b)))
			})
			all := &SplitRecords{Key: key, Records: alone(members)}
			first, _ := members[0].Spec.(model.Split) // its key proves the type
			if all.Records[0].LeftOut = first.NoEffect; first.NoEffect == "" {
				all.split = splitAt(key, split.Split{Backends: first.Backends, NearFirst: first.NearFirst})
			}
			for i := range all.Records {
				if order.splits[key] != nil {
					all.Records[i].LeftOut = "the configuration divides the calls to this host"
				}
			}
			return all
		},
		Same: func(a, b *SplitRecords) bool {
			return a.split.Equal(b.split) && slices.EqualFunc(a.Records, b.Records, Contributor.equal)
		},
	})
	return &splitting{Records: records, backing: map[ServiceKey]map[ServiceKey]struct{}{}}
}

// splitAt returns the split of a service, of which the service itself may be a backend by
// its name.
func splitAt(key ServiceKey, s split.Split) *split.Split {
	s.Backends = slices.Clone(s.Backends)
	for i, b := range s.Backends {
		of := KeyOf(b.Service.Namespace, b.Service.Host)
		if of == key {
			of = ServiceKey{}
		}
		s.Backends[i].Service = model.ServiceName(of)
	}
	return &s
}

// finish ends a step, and returns the services that records divide otherwise.
func (s *splitting) finish(before immutable.Map[ServiceKey, *SplitRecords]) []ServiceKey {
	now, changed := s.Finish(before)
	s.now = now
	return slices.Collect(maps.Keys(changed))
}

// define sets the split of a definition, given the split of the configuration.
func (s *splitting) define(key ServiceKey, d *Definition, configured *split.Split) {
	d.Split = configured
	of, some := s.now.Get(key)
	if !some {
		return
	}
	d.SplitRecords = of.Records
	if d.Split == nil {
		d.Split = of.split
	}
	kept := of.Records[0].Record
	if configured != nil {
		kept.Key = model.Key{Source: "configuration", Namespace: key.Namespace, Name: key.Host}
	}
	for _, c := range of.Records {
		if c.Record != kept {
			d.Conflicts = append(d.Conflicts, Conflict{Field: "split", Kept: kept, Lost: c.Record, Reason: c.LeftOut})
		}
	}
}

// putBackends stores the services that are backends of a touched service.
func (s *splitting) putBackends(key ServiceKey, t *touched) {
	each := func(service *Service, put func(backend ServiceKey)) {
		if service == nil || service.Split == nil {
			return
		}
		for _, b := range service.Split.Backends {
			if b.Service != (model.ServiceName{}) {
				put(ServiceKey(b.Service))
			}
		}
	}
	if t.old != nil && t.now != nil && t.old.Definition == t.now.Definition {
		return
	}
	each(t.old, func(backend ServiceKey) { drop(s.backing, backend, key) })
	each(t.now, func(backend ServiceKey) { add(s.backing, backend, key, struct{}{}) })
}
