package envoy

import (
	"iter"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/push"
)

// World is a catalog snapshot as xDS clients see it.
type World struct {
	snapshot *catalog.Snapshot
	complete bool
	root     string
}

var _ push.World = (*World)(nil)

// NewWorld returns the world of a snapshot. Complete says that every source
// has been listed. The scopes of the namespace root hold for workloads that
// have none of their own.
func NewWorld(snapshot *catalog.Snapshot, complete bool, root string) *World {
	return &World{snapshot, complete, root}
}

// Complete implements [push.World].
func (w *World) Complete() bool { return w.complete }

// View implements [push.World].
func (w *World) View(c push.Client) push.View {
	v := push.View{Kind: c.Kind, Namespace: c.Namespace}
	if scope := w.snapshot.ScopeOf(c.Namespace, c.Labels, w.root); scope != nil {
		v.Scope = scope
	}
	return v
}

// viewer returns whose view it is, in the catalog's terms.
func viewer(v push.View) catalog.Viewer {
	scope, _ := v.Scope.(*catalog.Scope)
	return catalog.Viewer{Namespace: v.Namespace, Scope: scope}
}

// Names implements [push.World]: by host, then port.
func (w *World) Names(v push.View, t push.Type) iter.Seq[string] {
	return func(yield func(string) bool) {
		for s := range w.snapshot.Visible(viewer(v)) {
			for _, port := range s.Ports {
				if !formFor(v.Kind, s, port).holds(t, v.Kind) {
					continue
				}
				if !yield(nameOf(t, s.Key.Host, port.Number)) {
					return
				}
			}
		}
	}
}

// Find implements [push.World].
func (w *World) Find(v push.View, t push.Type, name string) (push.Subject, bool) {
	host, number, ok := parseName(t, name)
	if !ok {
		return nil, false
	}
	s, ok := w.snapshot.Resolve(viewer(v), host)
	if !ok {
		return nil, false
	}
	port, ok := s.Port(number)
	if !ok {
		return nil, false
	}
	f := formFor(v.Kind, s, port)
	if !f.holds(t, v.Kind) {
		return nil, false
	}
	return subjectOf(t, s, port, f), true
}

// Void implements [push.World]. Load assignments alone have no removal in the
// state-of-the-world protocol for which there is something to say instead.
func (w *World) Void(t push.Type, name string) (push.Encoded, bool) {
	if t != EndpointType || name == "" {
		return push.Encoded{}, false
	}
	return encodeAssignment(name, nil), true
}

func formFor(kind string, s *catalog.Service, port model.Port) form {
	f, _ := offer(kind, s, port)
	return f
}

func subjectOf(t push.Type, s *catalog.Service, port model.Port, f form) push.Subject {
	at := slot{t: t, key: s.Key, port: port.Number}
	switch t {
	case ClusterType:
		return clusterOf(at, s, port, f)
	case EndpointType:
		return assignment{at, s.Endpoints(port.Number)}
	case ListenerType:
		return listener{at}
	default:
		return route{at}
	}
}

func nameOf(t push.Type, host string, port uint32) string {
	if t == ListenerType {
		return ListenerName(host, port)
	}
	return ClusterName(host, port)
}

func parseName(t push.Type, name string) (host string, port uint32, ok bool) {
	if t == ListenerType {
		return parseListenerName(name)
	}
	return parseClusterName(name)
}
