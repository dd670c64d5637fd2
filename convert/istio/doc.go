// Package istio reads and makes the objects of networking.istio.io that say what
// services there are: ServiceEntry, WorkloadEntry, WorkloadGroup and Sidecar. It
// is the one room that knows them. It does no I/O: who lists, watches or writes
// is another's business.
//
// An object is read from YAML or JSON with the lines of everything in it, from
// one JSON value, or from a message of istio.io/api:
//
//	for object := range istio.Read(text) {
//		switch {
//		case object.Ignored: // of another kind, or written by an Isthmus
//		case !object.Valid():
//			refused = append(refused, object.Refusal("shop.yaml", where(object.Problems[0].Line)))
//		default:
//			objects = append(objects, object.Listed("shop.yaml"))
//		}
//	}
//
// Whatever form it came in, it is judged once, by the rules of a cluster with
// Istio: the schema of the custom resource definition with its CEL rules, then
// the validation of Istio's admission webhook. test/verdicts compares the two.
// All problems of an object are found, each with its field, its line if there is
// one, and how to fix it. A valid object becomes a record, and the endpoints in a
// ServiceEntry become records that it owns.
//
// Functions here share nothing and may be called from any goroutine.
package istio
