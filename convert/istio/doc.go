// Package istio reads and makes the objects of networking.istio.io that describe services:
// ServiceEntry, WorkloadEntry, WorkloadGroup and Sidecar. No other package knows their
// content. It does no I/O: sources and outputs list, watch and write.
//
// The table of [Definitions] has one row for each kind that is read or can be carried. All
// sources and outputs work from it. It has SMI's TrafficSplit as well, which package convert/smi
// judges, and no protocol carries. A carried object, such as a DestinationRule, becomes a
// record with Istio's message, which control planes are sent unchanged: see [Carry].
//
// An object is read from YAML or JSON with the line of every field, from one JSON value, or
// from a message of istio.io/api:
//
//	for object := range istio.Read(text) {
//		switch {
//		case object.Ignored: // of another kind, or written by an Isthmus
//		case !object.Valid():
//			rejected = append(rejected, object.Rejection("shop.yaml", where(object.Problems[0].Line)))
//		default:
//			objects = append(objects, object.Listed("shop.yaml"))
//		}
//	}
//
// In every form an object is validated by the rules of a cluster with Istio. These are the
// schema of the custom resource definition with its CEL rules, then the rules of Istio's
// admission webhook. test/verdicts compares this package with such a cluster. An object
// made by a registry is judged endpoint by endpoint: see [FromResource]. All problems of an
// object are found, each with its field, its line if there is one, and how to fix it. A
// valid object becomes a record, and the endpoints in a ServiceEntry become records that it
// owns.
//
// Package compose makes objects of the catalog: the way back.
//
// Functions here share nothing and may be called from any goroutine.
package istio
