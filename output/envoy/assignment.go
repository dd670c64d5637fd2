package envoy

import (
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/lb"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push"
)

// assignment is what a ClusterLoadAssignment is made of. The service's
// definition has no part in it.
type assignment struct {
	assignmentSlot
	endpoints *catalog.Endpoints
	order     lb.Order
}

// assignmentSlot tells the variants of a load assignment apart.
type assignmentSlot struct {
	slot
	byWeight bool                   // the weights of endpoints are those of localities
	from     lb.Location            // of the clients, as far as it matters in the order
	via      *policy.RemoteGateways // to endpoints of other networks; nil if there are none
	avoids   lb.Avoided             // by the client, which is an edge
}

// Slot implements [push.Subject].
func (s assignmentSlot) Slot() any { return s }

// Encode implements [push.Subject].
func (a assignment) Encode() push.Encoded {
	d := &lb.Draft{Of: a.subset, From: a.from, Order: a.order, Via: a.via, Avoids: a.avoids}
	d.Name = a.clusterName()
	if a.byWeight {
		d.TellWeightsApart(a.endpoints)
	}
	d.Fill(a.endpoints, reach.IPAddress)
	return resourceOf(d.Name, d.Any())
}
