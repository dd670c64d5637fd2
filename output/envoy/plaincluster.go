package envoy

import (
	"iter"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/isthmus-mesh/isthmus/push"
)

// plainClusterNames yields the clusters that stand for no service.
func plainClusterNames(_ *World, v View) iter.Seq[string] {
	return slices.Values(append([]string{blackHoleCluster, passthroughCluster}, inboundClusterNames(v)...))
}

// ownClusterNames yields those, and the clusters of a gateway.
func ownClusterNames(w *World, v View) iter.Seq[string] {
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

func findOwnCluster(w *World, v View, name string) (push.Subject, bool) {
	if entered, ok := findEntered(w, v, ClusterType, name); ok {
		return entered, true
	}
	if own, ok := findInboundCluster(v, name); ok {
		return own, true
	}
	return plainCluster(name), name == blackHoleCluster || name == passthroughCluster
}

// plainCluster goes nowhere, or wherever a connection was going.
type plainCluster string

// Slot implements [push.Subject].
func (c plainCluster) Slot() any { return c }

// Encode implements [push.Subject].
func (c plainCluster) Encode() push.Encoded {
	m := &clusterv3.Cluster{Name: string(c), ConnectTimeout: durationpb.New(connectTimeout), AltStatName: string(c) + ";"}
	if c == passthroughCluster {
		setType(m, clusterv3.Cluster_ORIGINAL_DST)
		m.LbPolicy = clusterv3.Cluster_CLUSTER_PROVIDED
		m.TypedExtensionProtocolOptions = asIsSpoken.options()
		m.CircuitBreakers = noLimits()
	} else {
		setType(m, clusterv3.Cluster_STATIC)
	}
	return encode(m.GetName(), clusterURL, m)
}
