package admin

import (
	"context"

	"github.com/isthmus-mesh/isthmus/catalog"
)

// conflicts finds those of a service in one snapshot: between its records, and with other
// services over what clients can have from one only. Some are missing once the request has
// ended for which they are looked for.
type conflicts []conflictsAt

// conflictsAt are those at one output.
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
