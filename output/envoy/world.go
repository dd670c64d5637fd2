package envoy

import (
	"iter"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/push"
)

// state is a catalog snapshot with everything else that resources are made from.
type state struct {
	snapshot *catalog.Snapshot
	root     string // the namespace of scopes for workloads without a scope
	settings *policy.Prepared

	definitions *definitions // for the edge, and for secrets
	spreads     *spreads     // nil if there are none
}

// World is a catalog snapshot for xDS clients.
type World struct {
	state
	complete bool
	types    []resourceType
}

var _ push.World = (*World)(nil)

// NewWorld returns the world of a snapshot. Complete means that every source has been
// listed. The scopes of the namespace root apply to workloads without a scope of their own.
func NewWorld(snapshot *catalog.Snapshot, complete bool, root string) *World {
	return worldUnder(policy.Istio, snapshot, complete, root, nil)
}

// worldUnder is [NewWorld] for some settings. Known are the definitions of the snapshot.
func worldUnder(s *policy.Prepared, snapshot *catalog.Snapshot, complete bool, root string, known *definitions) *World {
	return &World{state{snapshot: snapshot, root: root, settings: s, definitions: known}, complete, resourceTypes()}
}

// Complete implements [push.World].
func (w *World) Complete() bool { return w.complete }

// View implements [push.World].
func (w *World) View(r push.Row, c push.Client) push.View {
	v := View{Kind: c.Kind, Namespace: c.Namespace, scope: w.snapshot.ScopeOf(c.Namespace, c.Labels, w.root)}
	if w.settings != policy.Istio {
		v.settings = w.settings
	}
	if add := w.types[r].view; add != nil {
		add(&w.state, c, &v)
	}
	return v
}

// Names implements [push.World]: first the resources of an Envoy's own, then the resources
// of service ports by host and port.
func (w *World) Names(view push.View, r push.Row) iter.Seq[string] {
	if w.types[r].names == nil {
		return nothing
	}
	return w.types[r].names(&w.state, of(view))
}

// Find implements [push.World].
func (w *World) Find(view push.View, r push.Row, name string) (push.Subject, bool) {
	if w.types[r].find == nil {
		return nil, false
	}
	return w.types[r].find(&w.state, of(view), name)
}
