package kubernetes

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"github.com/isthmus-mesh/isthmus/model"
)

// Node is what is read of a Node.
type Node struct {
	Name     string
	Locality model.Locality
}

// Labels of nodes and pods, as Istio reads them.
const (
	subZoneLabel = "topology.istio.io/subzone"
	networkLabel = "topology.istio.io/network"
)

// ReadNode reads a Node.
func ReadNode(n *corev1.Node) Node {
	return Node{n.Name, model.Locality{
		Region:  cmp.Or(n.Labels[corev1.LabelTopologyRegion], n.Labels[corev1.LabelFailureDomainBetaRegion]),
		Zone:    cmp.Or(n.Labels[corev1.LabelTopologyZone], n.Labels[corev1.LabelFailureDomainBetaZone]),
		SubZone: n.Labels[subZoneLabel],
	}}
}

// Pod is what is read of a Pod.
type Pod struct {
	Name
	UID     string
	Account string // the service account it runs as
	Labels  model.Labels
}

// Same reports whether p and o say the same.
func (p Pod) Same(o Pod) bool {
	return p.Name == o.Name && p.UID == o.UID && p.Account == o.Account && p.Labels.Equal(o.Labels)
}

// ReadPod reads a Pod.
func ReadPod(p *corev1.Pod) Pod {
	return Pod{Name{p.Namespace, p.Name}, string(p.UID), p.Spec.ServiceAccountName, model.MapOf(p.Labels)}
}

// Places say what is known beside the slices. Whoever changes what they say says so to
// each [Group] concerned.
type Places interface {
	// Node returns the locality of a node, and whether the node is known.
	Node(name string) (model.Locality, bool)
	// Region returns that of a zone, by the nodes that are known; empty if there are none.
	Region(zone string) string
	// Pod returns a pod, and whether it is known.
	Pod(name Name) (Pod, bool)
	// Awaits reports whether a pod of this UID is not known yet, and may still be.
	Awaits(uid string) bool
}

// localityOf is where an endpoint runs. The zone stands in its slice, so a region is
// known before its node is.
func localityOf(e *sliceEndpoint, places Places) model.Locality {
	at, known := places.Node(e.node)
	at.Zone = cmp.Or(e.zone, at.Zone)
	if at.Region == "" && !known {
		at.Region = places.Region(at.Zone)
	}
	return at
}
