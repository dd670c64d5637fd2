package scale

import (
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Fields of the two requests that differ from one to the next.
const (
	sotwNodeField    = 2
	sotwVersionField = 1
	sotwNonceField   = 5
	deltaNodeField   = 1
	deltaNonceField  = 6
)

// script is what a client says. It is immutable and shared by all clients that
// say the same.
type script struct {
	delta bool
	agent string // user_agent_name
	steps []step // one type each, in the order in which they are asked for
}

// step asks for a type. The next step follows once its resources have arrived.
type step struct {
	typeURL string
	ask     []byte // the first request, without the node
	ack     []byte // what every acknowledgement has in common
	want    int    // resources that the whole answer brings
	silent  bool   // there is no answer to wait for
}

// asking is a step: names nil asks for everything, and held is what a client
// that comes back has.
func (s *script) asking(typeURL string, names []string, want int, held map[string]string) step {
	if !s.delta {
		ask := marshal(&discoveryv3.DiscoveryRequest{TypeUrl: typeURL, ResourceNames: names})
		return step{typeURL, ask, ask, want, false}
	}
	return step{
		typeURL: typeURL,
		ask: marshal(&discoveryv3.DeltaDiscoveryRequest{
			TypeUrl: typeURL, ResourceNamesSubscribe: names, InitialResourceVersions: held,
		}),
		ack:    marshal(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL}),
		want:   want,
		silent: held != nil,
	}
}

// envoyScript asks for all clusters, the load assignments of all of them by
// name, and all listeners, of which there are none. Held is what the client
// has, by type and name, or nil.
func envoyScript(delta bool, services int, held map[string]map[string]string) *script {
	s := &script{delta: delta, agent: "envoy"}
	s.steps = []step{
		s.asking(clusters, nil, services, held[clusters]),
		s.asking(assignments, namesOf(clusterName, 0, services, services), services, held[assignments]),
		s.asking(listeners, nil, 0, nil),
	}
	return s
}

// selectiveScript asks for the clusters and load assignments of some services,
// whatever else there is.
func selectiveScript(services int) *script {
	s := &script{delta: true, agent: "envoy"}
	names := namesOf(clusterName, 0, services, services)
	s.steps = []step{s.asking(clusters, names, services, nil), s.asking(assignments, names, services, nil)}
	return s
}

// grpcScript asks for n services from the first on, as a gRPC client with n
// channels does: listeners, routes, clusters and load assignments by name.
func grpcScript(first, n, services int) *script {
	s := &script{agent: "gRPC Go"}
	for _, typeURL := range []string{listeners, routes, clusters, assignments} {
		name := clusterName
		if typeURL == listeners {
			name = listenerName
		}
		s.steps = append(s.steps, s.asking(typeURL, namesOf(name, first, n, services), n, nil))
	}
	return s
}

// namesOf names n services from the first on, and goes on with service 0 after
// the last.
func namesOf(name func(int) string, first, n, services int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = name((first + i) % services)
	}
	return names
}

// first opens a stream: it is the one request that says who the client is.
func (s *script) first(id string) request {
	node := marshal(&corev3.Node{
		Id: id, UserAgentName: s.agent, ClientFeatures: []string{"envoy.lb.does_not_support_overprovisioning"},
	})
	field := protowire.Number(sotwNodeField)
	if s.delta {
		field = deltaNodeField
	}
	return request{s.steps[0].ask, protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), node)}
}

// accept acknowledges a response.
func (s *script) accept(st *step, r *response) request {
	if s.delta {
		return request{st.ack, appendString(nil, deltaNonceField, r.nonce)}
	}
	return request{st.ack, appendString(appendString(nil, sotwVersionField, r.version), sotwNonceField, r.nonce)}
}

// stepOf returns which step asked for a type, -1 if none did.
func (s *script) stepOf(typeURL string) int {
	return slices.IndexFunc(s.steps, func(st step) bool { return st.typeURL == typeURL })
}

func appendString(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func marshal(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic(err) // only text that is not UTF-8 fails, and all of it is our own
	}
	return b
}
