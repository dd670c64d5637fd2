// Package compose makes Istio's objects from the catalog: the opposite direction of package
// istio.
//
// A service becomes one ServiceEntry. It becomes several, which Istio unites, if it has
// many endpoints or some that do not serve all of its ports. A scope becomes a Sidecar:
//
//	draft := compose.DraftService(service, compose.Layout{ShardSize: 100})
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
// Functions here are pure and share nothing: they may be called from any goroutine.
package compose
