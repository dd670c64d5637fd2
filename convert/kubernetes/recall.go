package kubernetes

import (
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
)

// Owner returns the name of the Service that a stored record belongs to. It is the name of
// no Service if the record belongs to none.
func Owner(r model.Record) Name {
	name, _ := strings.CutPrefix(r.Owner.Name, Name{}.Ref().Name)
	return Name{r.Owner.Namespace, name}
}

// Recall returns the pod and the node of a stored endpoint of the group, with the
// attributes stored in it. The pod has a UID, and the node a name, only if the same address
// serves the same ports on the same node as it did then.
func (g *Group) Recall(r model.Record) (pod Pod, node Node) {
	spec, is := r.Spec.(model.Endpoint)
	if !is {
		return pod, node
	}
	for _, i := range g.winners(spec.Address, func(*instance) bool { return false }) {
		e := i.main.endpoint()
		if r.Name != g.name.Ref().Name+"/"+i.name() || e.node != spec.Node {
			continue
		}
		node = Node{e.node, spec.Locality}
		if e.pod != "" {
			pod = Pod{Name{g.name.Namespace, e.pod}, e.uid, spec.ServiceAccount, spec.Labels}
		}
	}
	return pod, node
}
