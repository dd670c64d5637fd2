// Package istio reads and makes the objects of networking.istio.io that describe services:
// ServiceEntry, WorkloadEntry, WorkloadGroup and Sidecar. No other package knows their
// content. It does no I/O: sources and outputs list, watch and write.
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
// The way back begins at the catalog. A service becomes one ServiceEntry. It becomes
// several, which Istio unites, if it has many endpoints or some that do not serve all of
// its ports. A scope becomes a Sidecar:
//
//	draft := istio.DraftService(service, istio.Layout{ShardSize: 100})
//	for _, part := range draft.Parts {
//		text = istio.AppendSpec(text, part.Spec()) // or the message itself
//	}
//
// A draft costs little. A caller that remembers the [Ingredients] of a part makes its
// specification only when these have changed. [FromService] makes all specifications.
//
// [SidecarOf] returns the complete Sidecar of a scope, and [CarriedMessage] makes a message
// of an object that was carried in JSON.
//
// A service that is written and read again is the same, except for:
//
//   - its labels, annotations and time of creation, and the sources of its
//     records: an object is named after the host;
//   - endpoints that are not healthy, or that the resolution does not allow
//     ([Translation.LeftOut] counts them), and labels that Istio rejects;
//   - endpoints that serve some ports only ([model.Endpoint.Exact]): they are in an
//     object with just those ports;
//   - further addresses of endpoints ([model.Endpoint.Also]), for which Istio's objects
//     have no field;
//   - the choice of endpoints by clients ([model.Traffic]), and the nodes of endpoints;
//   - unix sockets that serve several ports: each port gets an endpoint;
//   - ports beyond 256, names of ports that are invalid or come twice, protocols that
//     Istio does not know, and the endpoints of a service without ports;
//   - with DNS, ports that no endpoint serves; if no port is served, DNS itself;
//   - a selector: the workloads that it selects are written instead;
//   - of a scope, all but its selector and hosts.
//
// A user's object that is read and written again is the same, except that:
//
//   - each of several hosts becomes an object of its own;
//   - its name and its selector are replaced as above;
//   - protocols are in upper case, and IP addresses in their shortest form;
//   - ports are in the order of their numbers, endpoints in the order of their addresses;
//   - an endpoint's port is left out where the service has the same.
//
// Functions here share nothing and may be called from any goroutine.
package istio
