package kubernetes

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"github.com/isthmus-mesh/isthmus/model"
)

// Node is the fields read of a Node.
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

// Pod is the fields read of a Pod.
type Pod struct {
	Name
	UID     string
	Account string // the service account it runs as
	Labels  model.Labels
}

// Same reports whether p and o are equal.
func (p Pod) Same(o Pod) bool {
	return p.Name == o.Name && p.UID == o.UID && p.Account == o.Account && p.Labels.Equal(o.Labels)
}

// ReadPod reads a Pod.
func ReadPod(p *corev1.Pod) Pod {
	return Pod{Name{p.Namespace, p.Name}, string(p.UID), p.Spec.ServiceAccountName, model.MapOf(p.Labels)}
}

// Places gives access to nodes, zones and pods. The owner of a Places reports each change
// to the affected groups.
type Places interface {
	// Node returns the locality of a node, and whether the node is known.
	Node(name string) (model.Locality, bool)
	// Region returns the region of a zone, by the known nodes; empty if there are none.
	Region(zone string) string
	// Pod returns a pod, and whether it is known.
	Pod(name Name) (Pod, bool)
	// Awaits reports whether a pod of this UID is not known yet, but may become known.
	Awaits(uid string) bool
}

// localityOf returns the locality of an endpoint. The zone is in its slice, so a region is
// known before its node is.
func localityOf(e *sliceEndpoint, places Places) model.Locality {
	at, known := places.Node(e.node)
	at.Zone = cmp.Or(e.zone, at.Zone)
	if at.Region == "" && !known {
		at.Region = places.Region(at.Zone)
	}
	return at
}
