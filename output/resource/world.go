package resource

import (
	"cmp"
	"iter"

	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// World is everything of a catalog snapshot that the protocol carries, by content
// and name.
type World struct {
	table    Table
	objects  map[content]objects // never written again
	complete bool
}

// objects are the resources of one content by their names.
type objects = immutable.Map[string, *object]

func noObjects() objects { return immutable.New[string, *object](cmp.Compare[string]) }

var _ world.World = (*World)(nil)

// The kinds of clients. Both see the same.
const (
	KindIstiod = "istiod"
	KindMCP    = "mcp" // any other
)

// View is what a client sees: all but what is labelled for another revision.
type View struct{ Revision string }

// Complete implements [world.World].
func (w *World) Complete() bool { return w.complete }

// View implements [world.World].
func (w *World) View(_ world.Row, c world.Client) world.View { return View{c.Revision} }

// Names implements [world.World]: in order.
func (w *World) Names(v world.View, r world.Row) iter.Seq[string] {
	return func(yield func(string) bool) {
		all, ok := w.objects[w.table[r].content()]
		if !ok {
			return
		}
		for name, o := range all.All() {
			if o.visibleTo(v) && !yield(name) {
				return
			}
		}
	}
}

// Find implements [world.World].
func (w *World) Find(v world.View, r world.Row, name string) (world.Subject, bool) {
	all, ok := w.objects[w.table[r].content()]
	if !ok {
		return nil, false
	}
	o, ok := all.Get(name)
	if !ok || !o.visibleTo(v) {
		return nil, false
	}
	return o, true
}

// revisionLabel names the revision of Istio that an object is for.
const revisionLabel = "istio.io/rev"

// visibleTo is Istio's own rule: whoever has no revision takes everything, and an
// object without one is for everybody.
func (o *object) visibleTo(v world.View) bool {
	view, _ := v.(View)
	return o.revision == "" || view.Revision == "" || o.revision == view.Revision
}
