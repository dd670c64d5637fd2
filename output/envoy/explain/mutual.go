package explain

import (
	"cmp"
	"fmt"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
)

// sockets are the ways in which a cluster secures its connections.
type sockets struct {
	all      *tlsv3.UpstreamTlsContext // of all endpoints; nil without it
	labelled *tlsv3.UpstreamTlsContext // of the endpoints with the label; nil without it
}

// socketsOf reads the transport sockets of a cluster.
func socketsOf(c *clusterv3.Cluster) (s sockets) {
	s.all = upstream(c.GetTransportSocket())
	for _, m := range c.GetTransportSocketMatches() {
		if tlsMode(m.GetMatch().GetFields()["tlsMode"].GetStringValue()) {
			s.labelled = upstream(m.GetTransportSocket())
		}
	}
	return s
}

// upstream returns the TLS of a socket; nil if it has none.
func upstream(s *corev3.TransportSocket) *tlsv3.UpstreamTlsContext {
	var context tlsv3.UpstreamTlsContext
	if s == nil || s.GetTypedConfig().UnmarshalTo(&context) != nil {
		return nil
	}
	return &context
}

// tlsMode reports whether a value of the label asks for mutual TLS.
func tlsMode(value string) bool { return value == "istio" }

// isLabelled reports whether an endpoint is called by mutual TLS, where its cluster has it.
func isLabelled(e *endpointv3.LbEndpoint) bool {
	fields := e.GetMetadata().GetFilterMetadata()["envoy.transport_socket_match"].GetFields()
	return tlsMode(fields["tlsMode"].GetStringValue())
}

// secure says how calls to a cluster are secured, where workloads take mutual TLS. It returns
// an addition to the reason.
func (f follower) secure(at endpoints) (addition string) {
	modes := f.Settings.OrIstio().Mesh.In(f.trace.Service.Key.Namespace)
	if modes == nil {
		return ""
	}
	mode := modes.Of(at.port).String()
	const stage = "tls"
	switch labelled := at.sockets.labelled; {
	case at.sockets.all != nil:
		f.trace.Pass(stage, "TLS, as the tls of the host says; "+accepted(at.sockets.all))
	case labelled == nil:
		f.trace.Pass(stage, "plaintext, since "+f.unsecured(modes.Of(at.port))+rejection(modes.Of(at.port)))
	case at.single:
		f.trace.Pass(stage, "mutual TLS to the endpoints with the label "+policy.MutualLabel+", and plaintext to others; mode of the port: "+mode+"; "+accepted(labelled))
	case at.labelled == at.n:
		f.trace.Pass(stage, fmt.Sprintf("mutual TLS to %s; mode of the port: %s; %s", count(at.n, "endpoint"), mode, accepted(labelled)))
		return " by mutual TLS"
	case at.labelled == 0:
		f.trace.Pass(stage, "plaintext, since no endpoint has the label "+policy.MutualLabel+rejection(modes.Of(at.port)))
	default:
		f.trace.Pass(stage, fmt.Sprintf("mutual TLS to %d of %s, and plaintext to the others, which lack the label %s; mode of the port: %s; %s",
			at.labelled, count(at.n, "endpoint"), policy.MutualLabel, mode, accepted(labelled)))
	}
	return ""
}

// unsecured returns why a cluster has no mutual TLS.
func (f follower) unsecured(mode policy.Mutual) string {
	s := f.trace.Service
	switch {
	case reach.IsGRPC(f.call.Client.Kind):
		return "gRPC clients take no certificates"
	case f.call.Client.Account == "":
		return "the client proves no account, and so has no certificate"
	case s.Location == model.MeshExternal:
		return "the service has the location MESH_EXTERNAL"
	case mode == policy.Plaintext:
		return "the mode of the port is DISABLE"
	default:
		return "the settings of the host or the resolution of the service exclude mutual TLS"
	}
}

// rejection is the effect of plaintext in a mode.
func rejection(mode policy.Mutual) string {
	switch mode {
	case policy.Strict:
		return "; a sidecar with a certificate rejects that in the mode STRICT of the port"
	case policy.Permissive:
		return "; mode of the port: PERMISSIVE"
	default:
		return ""
	}
}

// accepted lists the names of which the certificate of a server must have one.
func accepted(context *tlsv3.UpstreamTlsContext) string {
	var list []string
	common := context.GetCommonTlsContext()
	for _, name := range common.GetCombinedValidationContext().GetDefaultValidationContext().GetMatchTypedSubjectAltNames() {
		m := name.GetMatcher()
		if prefix := m.GetPrefix(); prefix != "" {
			list = append(list, prefix+"*")
			continue
		}
		list = append(list, cmp.Or(m.GetExact(), "another pattern"))
	}
	if len(list) == 0 {
		return "any name of the authorities is accepted"
	}
	return "accepted of servers: " + strings.Join(list, ", ")
}
