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
func (m *mirror) recall(stored func() iter.Seq[model.Record]) {
	if stored == nil || len(m.unlisted.of(nodes))+len(m.unlisted.of(pods)) == 0 {
		return
	}
	for r := range stored() {
		m.recallRecord(r)
	}
}

func (m *mirror) recallRecord(r model.Record) {
	g := m.groups[convert.Owner(r)]
	if g == nil {
		return
	}
	pod, node := g.Recall(r)
	if _, known := m.pods[pod.Name]; m.unlisted.has(pods, pod.Namespace) && pod.UID != "" && !known {
		m.enterPod(object{pod.Name, pod})
	}
	if _, known := m.nodes[node.Name]; m.unlisted.has(nodes, "") && node != (convert.Node{Name: node.Name}) && !known {
		m.enterNode(object{convert.Name{Name: node.Name}, node})
	}
}
