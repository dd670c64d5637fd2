package admin

import (
	"context"

	"github.com/isthmus-mesh/isthmus/catalog"
)

// conflicts finds the conflicts of services in one snapshot: between the records of a
// service, and with other services whose clients can have only one of them. Some are
// missing once the request that looks for them has ended.
type conflicts []conflictsAt

// conflictsAt is the conflicts at one output.
type conflictsAt struct {
	output string
	of     func(*catalog.Service) []catalog.Conflict
}

func conflictsIn(ctx context.Context, snapshot *catalog.Snapshot, outputs []served) conflicts {
	all := conflicts{{"", func(s *catalog.Service) []catalog.Conflict { return s.Conflicts }}}
	for _, o := range outputs {
		if o.Conflicts != nil {
			all = append(all, conflictsAt{o.name, o.Conflicts(ctx, snapshot)})
		}
	}
	return all
}

func (c conflicts) of(service *catalog.Service) []Conflict {
	list := []Conflict{}
	for _, at := range c {
		for _, one := range at.of(service) {
			list = append(list, Conflict{at.output, one.Field, one.Kept.String(), one.Lost.String(), one.Reason})
		}
	}
	return list
}
