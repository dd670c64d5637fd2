package xds

import (
	"maps"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/isthmus-mesh/isthmus/push"
)

// Kinds names the flavours of resources by the kind of client.
type Kinds struct{ Envoy, GRPC string }

// viewOf tells what a client may see from what it says about itself.
func (k Kinds) viewOf(node *corev3.Node) push.View {
	v := push.View{Kind: k.Envoy, Namespace: namespaceOf(node)}
	if strings.HasPrefix(node.GetUserAgentName(), "gRPC") {
		v.Kind = k.GRPC
	}
	return v
}

// namespaceOf reads the metadata Istio's proxies send, else the node id in
// Istio's form, sidecar~IP~NAME.NAMESPACE~DOMAIN. A client that says neither
// has no namespace.
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

// identityOf describes what a client says it is, for people.
func identityOf(node *corev3.Node) string {
	ns, labels := namespaceOf(node), node.GetMetadata().GetFields()["LABELS"].GetStructValue()
	var b strings.Builder
	if ns != "" {
		b.WriteString("namespace " + ns)
	}
	for i, name := range slices.Sorted(maps.Keys(labels.GetFields())) {
		if b.Len() > 0 && i == 0 {
			b.WriteString(", ")
		} else if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(name + "=" + text(labels.GetFields()[name]))
	}
	return b.String()
}

func text(v *structpb.Value) string { return v.GetStringValue() }
