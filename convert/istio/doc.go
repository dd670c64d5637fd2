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
//			rejected = append(rejected, object.Rejection("shop.yaml", where(object.Problems[0].Line)))
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
// The way back begins at the catalog. A service becomes one ServiceEntry, or
// several that Istio unites, where it has many endpoints or some that do not
// serve all of its ports; a scope becomes a Sidecar:
//
//	made := istio.FromService(service, istio.Layout{ShardSize: 100})
//	for _, part := range made.Parts {
//		text = istio.AppendSpec(text, part.Spec) // or the message itself
//	}
//
// What a service says is there again when its objects are read, but for this:
//
//   - its labels, annotations and time of creation, and whose records it is of:
//     the name of an object comes from the host;
//   - endpoints that are not healthy, or that the resolution does not take
//     ([Translation.LeftOut] counts them), and labels that Istio does not take;
//   - that an endpoint serves some ports only ([model.Endpoint.Exact]), which
//     becomes an object with just those ports, and that a unix socket serves
//     several, which becomes an endpoint for each;
//   - ports beyond 256, names of ports that are none or come twice, protocols that
//     Istio does not know, and the endpoints of a service without ports;
//   - with DNS, ports that nobody serves; and DNS itself if nobody serves any;
//   - a selector, in whose place the workloads stand that it selects;
//   - of a scope, all but its selector and hosts.
//
// And an object that a user wrote is there again when its records are written,
// but that several hosts become an object each, a selector and its name are as
// above, protocols are in upper case, IP addresses in their shortest form, ports
// in the order of their numbers, endpoints in that of their addresses, and what an
// endpoint says of a port is left out where the service says the same.
//
// Functions here share nothing and may be called from any goroutine.
package istio
