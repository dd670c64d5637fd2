package kubernetes

import (
	"iter"

	convert "github.com/isthmus-mesh/isthmus/convert/kubernetes"
	"github.com/isthmus-mesh/isthmus/model"
)

// What pods and nodes say is part of endpoints. A run that may not read them would take
// labels, service accounts and regions from endpoints that have them: subsets would be
// empty, and clients would check no name in certificates. So a run that begins without
// pods or nodes takes what the stored endpoints say in their place, until they are listed.
// It does not matter whether an earlier run stored them, or an earlier process.

// part is what is listed by itself: a kind, or its objects in one namespace.
type part struct{ resource, namespace string }

// unreadOf are the nodes and pods that are going to be listed.
func unreadOf(c *Config) map[part]bool {
	parts := map[part]bool{{nodes, ""}: true}
	if !c.Pods {
		return parts
	}
	for _, namespace := range c.namespaces() {
		parts[part{pods, namespace}] = true
	}
	return parts
}

// isUnread reports whether objects of a namespace are not listed yet.
func (m *mirror) isUnread(resource, namespace string) bool {
	return m.unread[part{resource, ""}] || m.unread[part{resource, namespace}]
}

// recall enters pods and nodes that are not listed yet as stored endpoints show them.
func (m *mirror) recall(stored func() iter.Seq[model.Record]) {
	if stored == nil || len(m.unread) == 0 {
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
	if _, known := m.pods[pod.Name]; m.isUnread(pods, pod.Namespace) && pod.UID != "" && !known {
		m.enterPod(object{pod.Name, pod})
	}
	if _, known := m.nodes[node.Name]; m.isUnread(nodes, "") && node != (convert.Node{Name: node.Name}) && !known {
		m.enterNode(object{convert.Name{Name: node.Name}, node})
	}
}
