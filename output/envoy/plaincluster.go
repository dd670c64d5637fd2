package envoy

import (
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push"
)

// plainClusterNames yields the clusters that stand for no service.
func plainClusterNames(_ *state, v View) iter.Seq[string] {
	return slices.Values(append([]string{names.BlackHole, names.Passthrough}, inboundClusterNames(v)...))
}

// ownClusterNames yields those, and the clusters of a gateway.
func ownClusterNames(w *state, v View) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, names := range []iter.Seq[string]{plainClusterNames(w, v), enteredNames(w, v)} {
			for name := range names {
				if !yield(name) {
					return
				}
			}
		}
	}
}

func findOwnCluster(w *state, v View, name string) (push.Subject, bool) {
	if entered, ok := findEntered(w, v, ClusterType, name); ok {
		return entered, true
	}
	if own, ok := findInboundCluster(v, name); ok {
		return own, true
	}
	return plainCluster(name), name == names.BlackHole || name == names.Passthrough
}

// plainCluster goes nowhere, or wherever a connection was going.
type plainCluster string

// Slot implements [push.Subject].
func (c plainCluster) Slot() any { return c }

// Encode implements [push.Subject].
func (c plainCluster) Encode() push.Encoded {
	m := wire.BlackHoleCluster()
	if c == names.Passthrough {
		m = wire.PassthroughCluster()
	}
	return encode(m.GetName(), wire.ClusterURL, m)
}
