package kubernetes

import (
	"iter"

	convert "github.com/isthmus-mesh/isthmus/convert/kubernetes"
	"github.com/isthmus-mesh/isthmus/model"
)

// Endpoints contain data of pods and nodes. A run that may not read these would
// remove labels, service accounts and regions from stored endpoints. Subsets would be
// empty, and clients would check no name in certificates. So a run that begins
// without pods or nodes takes their data from the stored endpoints, until they are
// listed. The stored endpoints may come from an earlier run or an earlier process.

// recall enters pods and nodes that are not listed yet, as the stored endpoints show them.
func (m *objects) recall(stored func() iter.Seq[model.Record], unlisted parts) {
	if stored == nil || len(unlisted.of(nodes))+len(unlisted.of(pods)) == 0 {
		return
	}
	for r := range stored() {
		m.recallRecord(r, unlisted)
	}
}

func (m *objects) recallRecord(r model.Record, unlisted parts) {
	g, in := m.groups.Get(convert.Owner(r))
	if in == nil {
		return
	}
	pod, node := g.Recall(r)
	if _, known := m.places.pods[pod.Name]; unlisted.has(pods, pod.Namespace) && pod.UID != "" && !known {
		m.places.enterPod(object{pod.Name, pod})
	}
	if _, known := m.places.nodes[node.Name]; unlisted.has(nodes, "") && node != (convert.Node{Name: node.Name}) && !known {
		m.places.enterNode(object{convert.Name{Name: node.Name}, node})
	}
}
