package mirror

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/servicecenter/records"
	"github.com/isthmus-mesh/isthmus/source/servicecenter/registry"
)

// Graph is the known graph of consumers and providers. The zero value knows none.
type Graph struct {
	edges   []registry.Edge
	known   bool   // the graph has been read
	trouble string // why it could not be read; empty if it could
	objects []model.Object
	notices []model.Notice
	changed bool // since it was listed last
}

// Take takes an answer of the registry, or why there is none.
func (g *Graph) Take(edges []registry.Edge, err error) {
	reason := ""
	if err != nil {
		reason = err.Error() + "; what was known stays, and reading is tried again"
	} else {
		g.edges, g.known = edges, true
	}
	g.changed = g.changed || g.trouble != reason
	g.trouble = reason
}

// Update makes the objects and notices anew for the named services of the state, once
// the graph has been read.
func (g *Graph) Update(s *State, scoping *records.Scoping) {
	if !g.known {
		return
	}
	objects, notices := s.Graph(g.edges, scoping)
	same := slices.EqualFunc(g.objects, objects, func(a, b model.Object) bool { return a.Record.SameContent(b.Record) })
	g.changed = g.changed || !same || !slices.Equal(g.notices, notices)
	g.objects, g.notices = objects, notices
}

// Changed reports whether the graph has changed since it was listed last.
func (g *Graph) Changed() bool { return g.changed }

// Settle clears the pending change, once it is stored.
func (g *Graph) Settle() { g.changed = false }

// Enter adds the objects and notices of the graph to a listing of its place.
func (g *Graph) Enter(listing *model.Listing) {
	listing.Objects = append(listing.Objects, g.objects...)
	listing.Notices = g.notices
	if g.trouble != "" {
		listing.Rejected = append(listing.Rejected, model.Rejection{
			Place: records.GraphPlace, Object: "the dependencies", Where: records.GraphPlace, Reason: g.trouble,
		})
	}
}
