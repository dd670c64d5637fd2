package envoy

import (
	"iter"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// A service without an address of its own is called at its instances, each at its own address and
// port. An Envoy listens there where connections would otherwise not get there, or not secured.
// Package reach has the rules, and the names of what they concern.

// findChosenListener returns the listener at an instance.
func findChosenListener(w *state, v View, address string, number uint32) (world.Subject, bool) {
	found, ok := reach.ChosenAt(v.client(), w.snapshot, address, number)
	if !ok {
		return nil, false
	}
	return addressListenerOf(v, address, number, reach.Layout{Other: found.Cluster, Affinity: found.Traffic.Affinity}), true
}

// chosenClusters yields the clusters of instances that clients choose.
func chosenClusters(w *state, v View) iter.Seq[string] {
	return func(yield func(string) bool) {
		for index := range w.snapshot.Ports() {
			for s := range index.Visible(v.viewer()) {
				if port, _ := s.Port(index.Number); hasChosenCluster(w, v, s, port) && !yield(names.Subset(s.Key.Host, index.Number, names.Chosen)) {
					return
				}
			}
		}
	}
}

func hasChosenCluster(w *state, v View, s catalog.ServiceDefinition, port model.Port) bool {
	return v.proxy.Role == node.Sidecar && reach.HasChosenCluster(v.client(), s, port) && reach.HasCluster(s, port.Number) &&
		reach.IsAdmitted(v.client(), w.snapshot.Port(port.Number), s.Key)
}

// findChosenCluster returns one of them by the name of the service port's cluster. Nothing chooses
// an endpoint there, so it is secured for all of its connections.
func findChosenCluster(w *state, v View, whole string) (world.Subject, bool) {
	p, ok := findServicePort(w, v, clustersOfServices, whole)
	if !ok || !hasChosenCluster(w, v, p.ServiceDefinition, p.port) {
		return nil, false
	}
	p.form = reach.OriginalDST
	at := p.slot(ClusterType)
	at.chosen = true
	c := clusterOf(at, p.Service, p.port)
	c.target = 0 // the instance has the port
	c = securedBy(c, p.policy.TLS, p.Service, w.settings.TrustDomain)
	if v.proven && p.policy.TLS == nil {
		c = securedBy(c, w.settings.Mesh.Upstream, p.Service, w.settings.TrustDomain)
	}
	return clusterChosen(v, choiceOf(w, v, p), c), true
}
