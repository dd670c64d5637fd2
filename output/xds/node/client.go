package node

import (
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Kinds names the kinds of resources by the kind of client.
type Kinds struct {
	Envoy, GRPC, GRPCNode string
	// ControlPlane is istiod, and Configuration any other client that reads configuration.
	ControlPlane, Configuration string
	// Extensions are the extensions of clients that resources depend on.
	Extensions []string
}

// Client determines a client's description from its node. Configuration means that its first
// request is for a type of configuration. Ignored is the reason why entries of its listeners
// are left out; nil if none is.
func (k Kinds) Client(node *corev3.Node, configuration bool) (c world.Client, ignored error) {
	c = world.Client{
		Kind: k.Envoy, Namespace: namespaceOf(node), Labels: labelsOf(node), Locality: localityOf(node.GetLocality()),
		Addresses: addressesOf(node), Extensions: extensionsOf(node, k.Extensions),
		Release: [2]uint32{node.GetUserAgentBuildVersion().GetVersion().GetMajorNumber(), node.GetUserAgentBuildVersion().GetVersion().GetMinorNumber()},
	}
	switch agent := node.GetUserAgentName(); {
	case strings.HasPrefix(agent, "gRPC Node"): // in full "gRPC Node Pure JS"
		c.Kind = k.GRPCNode
	case strings.HasPrefix(agent, "gRPC"):
		c.Kind = k.GRPC
	}
	c.Network, c.Node, c.Cluster = text(node, networkField), text(node, nodeNameField), text(node, clusterField)
	switch api := text(node, "GENERATOR") == "api"; {
	case !api && !configuration:
	case api && (text(node, "ISTIO_REVISION") != "" || text(node, "ISTIO_VERSION") != ""):
		c.Kind, c.Revision = k.ControlPlane, text(node, "ISTIO_REVISION")
	default:
		c.Kind, c.Revision = k.Configuration, text(node, "ISTIO_REVISION")
	}
	c.Proxy, ignored = proxyOf(node, c.Addresses)
	return c, ignored
}

// The metadata fields of a client's location.
const (
	networkField  = "NETWORK"
	nodeNameField = "NODE_NAME"
	clusterField  = "CLUSTER_ID"
)

// text returns a string of the metadata; empty if the field is missing or no string.
func text(node *corev3.Node, field string) string {
	return node.GetMetadata().GetFields()[field].GetStringValue()
}

// declaredLabels returns the labels in the metadata that Istio's proxies send, with values
// of any type.
func declaredLabels(node *corev3.Node) map[string]*structpb.Value {
	return node.GetMetadata().GetFields()["LABELS"].GetStructValue().GetFields()
}

// labelsOf reads the workload's labels. A value that is not a string is skipped: as an
// empty label it would match selectors it was not meant for.
func labelsOf(node *corev3.Node) model.Labels {
	labels := map[string]string{}
	for name, value := range declaredLabels(node) {
		if text, ok := value.GetKind().(*structpb.Value_StringValue); ok {
			labels[name] = text.StringValue
		}
	}
	return model.MapOf(labels)
}

// istioID returns the parts of a node id in Istio's form,
// ROLE~IP~NAME.NAMESPACE~NAMESPACE.svc.DOMAIN; ok is false if the id has another form.
func istioID(node *corev3.Node) (role, ip, name string, ok bool) {
	parts := strings.Split(node.GetId(), "~")
	if len(parts) != 4 {
		return "", "", "", false
	}
	return parts[0], parts[1], parts[2], true
}

// namespaceOf reads the metadata that Istio's proxies send, otherwise the node id in
// Istio's form. A client with neither has no namespace.
func namespaceOf(node *corev3.Node) string {
	if ns := text(node, "NAMESPACE"); ns != "" {
		return ns
	}
	_, _, name, _ := istioID(node)
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		return name[dot+1:]
	}
	return ""
}

// mostAddresses bounds the kept addresses of a client: the first ones.
const mostAddresses = 8

// addressesOf reads the addresses of the workload from the metadata that Istio's proxies
// send, otherwise the address in a node id of Istio's form. As in istiod, one invalid
// address invalidates the whole list.
func addressesOf(node *corev3.Node) []string {
	if addresses := validAddresses(text(node, "INSTANCE_IPS")); addresses != nil {
		return addresses
	}
	_, ip, _, _ := istioID(node)
	return validAddresses(ip)
}

// validAddresses returns the addresses of a comma-separated list; nil if any of them is
// invalid.
func validAddresses(list string) (addresses []string) {
	for text := range strings.SplitSeq(list, ",") {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return nil
		}
		if len(addresses) < mostAddresses {
			addresses = append(addresses, ip.WithZone("").String()) // a copy, which does not keep the message in memory
		}
	}
	return addresses
}

// extensionsOf returns the wanted extensions that a client declares.
func extensionsOf(node *corev3.Node, wanted []string) (has []string) {
	for _, name := range wanted {
		if slices.ContainsFunc(node.GetExtensions(), func(e *corev3.Extension) bool { return e.GetName() == name }) {
			has = append(has, name)
		}
	}
	return has
}

// localityOf reads a client's declared locality.
func localityOf(l *corev3.Locality) model.Locality {
	return model.Locality{Region: l.GetRegion(), Zone: l.GetZone(), SubZone: l.GetSubZone()}
}

// MarksFirstState reports whether a client asks for a mark where a first state ends.
func MarksFirstState(node *corev3.Node) bool { return text(node, mcp.MarkFirstState) == "true" }

// Describe returns a client's declared identity, for people.
func Describe(c world.Client) string {
	var parts []string
	if c.Namespace != "" {
		parts = append(parts, "namespace "+c.Namespace)
	}
	for name, value := range c.Labels.All() {
		parts = append(parts, name+"="+value)
	}
	return strings.Join(parts, " ")
}

// unprivilegedField is the metadata field of a proxy that cannot bind ports below
// [world.FirstUnprivilegedPort], as in Istio: "true".
const unprivilegedField = "UNPRIVILEGED_POD"

// proxyOf reads a proxy from its node id in Istio's form and its metadata: its role, its
// interception of connections, and its listeners. A client with another form of id is no such
// proxy.
func proxyOf(node *corev3.Node, addresses []string) (p world.Proxy, ignored error) {
	if role, _, _, ok := istioID(node); ok {
		p.Role = role
		for _, mode := range []string{"REDIRECT", "TPROXY", "NONE"} { // constants instead of the client's text, which would be kept
			if text(node, "INTERCEPTION_MODE") == mode {
				p.Interception = mode
			}
		}
		p.Unprivileged, _ = strconv.ParseBool(text(node, unprivilegedField))
	}
	binds, wrongBinds := bindsOf(node, p, addresses)
	ports, wrongPorts := outboundOf(node, p)
	p.Binds, p.Outbound = binds, ports
	return p, errors.Join(wrongBinds, wrongPorts)
}

// Unredirected reports whether nothing redirects connections to a client's proxy: a sidecar
// with INTERCEPTION_MODE NONE.
func Unredirected(p world.Proxy) bool { return p.Role == "sidecar" && p.Interception == "NONE" }
