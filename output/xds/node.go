package xds

import (
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/push"
)

// Kinds names the kinds of resources by the kind of client.
type Kinds struct {
	Envoy, GRPC, GRPCNode string
	// ControlPlane is istiod, and Configuration any other client that reads configuration.
	ControlPlane, Configuration string
	// Extensions are the extensions of clients that resources depend on.
	Extensions []string
}

// clientOf determines a client's description from its node, and from the type that it asks
// for first.
func (k Kinds) clientOf(node *corev3.Node, typeURL string) push.Client {
	c := push.Client{
		Kind: k.Envoy, Namespace: namespaceOf(node), Labels: labelsOf(node), Locality: localityOf(node.GetLocality()),
		Addresses: addressesOf(node), Extensions: extensionsOf(node, k.Extensions), Proxy: proxyOf(node),
		Release: [2]uint32{node.GetUserAgentBuildVersion().GetVersion().GetMajorNumber(), node.GetUserAgentBuildVersion().GetVersion().GetMinorNumber()},
	}
	switch agent := node.GetUserAgentName(); {
	case strings.HasPrefix(agent, "gRPC Node"): // in full "gRPC Node Pure JS"
		c.Kind = k.GRPCNode
	case strings.HasPrefix(agent, "gRPC"):
		c.Kind = k.GRPC
	}
	said := func(field string) string { return node.GetMetadata().GetFields()[field].GetStringValue() }
	c.Network, c.Node, c.Cluster = said("NETWORK"), said("NODE_NAME"), said("CLUSTER_ID")
	switch api := said("GENERATOR") == "api"; {
	case !api && !isConfiguration(typeURL):
	case api && (said("ISTIO_REVISION") != "" || said("ISTIO_VERSION") != ""):
		c.Kind, c.Revision = k.ControlPlane, said("ISTIO_REVISION")
	default:
		c.Kind, c.Revision = k.Configuration, said("ISTIO_REVISION")
	}
	return c
}

// claimedLabels returns the labels in the metadata that Istio's proxies send, with values
// of any type.
func claimedLabels(node *corev3.Node) map[string]*structpb.Value {
	return node.GetMetadata().GetFields()["LABELS"].GetStructValue().GetFields()
}

// labelsOf reads the workload's labels. A value that is not a string is skipped: as an
// empty label it would match selectors it was not meant for.
func labelsOf(node *corev3.Node) model.Labels {
	labels := map[string]string{}
	for name, value := range claimedLabels(node) {
		if text, ok := value.GetKind().(*structpb.Value_StringValue); ok {
			labels[name] = text.StringValue
		}
	}
	return model.MapOf(labels)
}

// namespaceOf reads the metadata that Istio's proxies send, otherwise the node id in
// Istio's form, sidecar~IP~NAME.NAMESPACE~DOMAIN. A client with neither has no namespace.
func namespaceOf(node *corev3.Node) string {
	if ns := node.GetMetadata().GetFields()["NAMESPACE"].GetStringValue(); ns != "" {
		return ns
	}
	parts := strings.Split(node.GetId(), "~")
	if len(parts) != 4 {
		return ""
	}
	if dot := strings.LastIndexByte(parts[2], '.'); dot >= 0 {
		return parts[2][dot+1:]
	}
	return ""
}

// proxyOf reads the role and interception of an Envoy from its id in Istio's form,
// ROLE~IP~NAME.NAMESPACE~NAMESPACE.svc.DOMAIN, and its metadata. A client whose id has
// another form is no such proxy.
func proxyOf(node *corev3.Node) push.Proxy {
	parts := strings.Split(node.GetId(), "~")
	if len(parts) != 4 {
		return push.Proxy{}
	}
	p := push.Proxy{Role: parts[0]}
	for _, mode := range []string{"REDIRECT", "TPROXY", "NONE"} { // constants instead of the client's text, which would be kept
		if node.GetMetadata().GetFields()["INTERCEPTION_MODE"].GetStringValue() == mode {
			p.Interception = mode
		}
	}
	p.Unprivileged, _ = strconv.ParseBool(node.GetMetadata().GetFields()[unprivilegedField].GetStringValue())
	return p
}

// unprivilegedField is the metadata field of a proxy that cannot bind ports below
// [push.FirstUnprivilegedPort], as in Istio: "true".
const unprivilegedField = "UNPRIVILEGED_POD"

// marksFirstState reports whether a client asks for a mark where a first state ends.
func marksFirstState(node *corev3.Node) bool {
	return node.GetMetadata().GetFields()[mcp.MarkFirstState].GetStringValue() == "true"
}

// describe returns a client's declared identity, for people.
func describe(c push.Client) string {
	var parts []string
	if c.Namespace != "" {
		parts = append(parts, "namespace "+c.Namespace)
	}
	for name, value := range c.Labels.All() {
		parts = append(parts, name+"="+value)
	}
	return strings.Join(parts, " ")
}
