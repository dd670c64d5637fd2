package istio

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	extensions "istio.io/api/extensions/v1alpha1"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	networkingbeta "istio.io/api/networking/v1beta1"
	security "istio.io/api/security/v1beta1"
	telemetry "istio.io/api/telemetry/v1alpha1"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
	"github.com/isthmus-mesh/isthmus/model"
)

// carried is the content of the record of an object that is carried unchanged.
type carried struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   CarriedMetadata `json:"metadata"`
	Spec       any             `json:"spec"`
}

// CarriedMetadata is the metadata of an object that is carried unchanged.
type CarriedMetadata struct {
	Namespace   string       `json:"namespace"`
	Name        string       `json:"name"`
	Labels      model.Labels `json:"labels,omitzero"`
	Annotations model.Labels `json:"annotations,omitzero"`
	Created     time.Time    `json:"creationTimestamp,omitzero"`
}

// contentOf returns the content of a valid object in JSON, in a form that depends on the
// content alone and not on the input's notation.
func contentOf(kind string, m meta, spec *yamlpos.Node) []byte {
	return mustJSON(carried{
		APIVersion: Group + "/" + Version,
		Kind:       kind,
		Metadata:   CarriedMetadata{m.namespace, m.name, m.spec.Labels, m.spec.Annotations, m.spec.Created},
		Spec:       plain(spec),
	})
}

// mustJSON encodes the values of nodes, which always have a JSON form.
func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// plain returns the value of a node, with numbers in one notation and without null entries:
// null means absent.
func plain(n *yamlpos.Node) any {
	switch n.Kind() {
	case yamlpos.Null:
		return nil
	case yamlpos.Bool:
		return n.Text() == "true"
	case yamlpos.Number:
		if n, ok := whole(n.Text()); ok {
			return n
		}
		return json.Number(n.Text())
	case yamlpos.String:
		return n.Text()
	case yamlpos.List:
		out := make([]any, n.Len())
		for i, item := range n.Items() {
			out[i] = plain(item)
		}
		return out
	default:
		out := make(map[string]any, n.Len())
		for key, value := range n.Fields() {
			if present(value) {
				out[key.Name] = plain(value)
			}
		}
		return out
	}
}

// opaque are the messages of the kinds that are carried and not read. Kinds that Istio no
// longer has are carried without a check.
var opaque = map[protoreflect.Name]proto.Message{
	"DestinationRule":       &networking.DestinationRule{},
	"VirtualService":        &networking.VirtualService{},
	"Gateway":               &networking.Gateway{},
	"EnvoyFilter":           &networking.EnvoyFilter{},
	"WorkloadGroup":         &networking.WorkloadGroup{},
	"ProxyConfig":           &networkingbeta.ProxyConfig{},
	"AuthorizationPolicy":   &security.AuthorizationPolicy{},
	"PeerAuthentication":    &security.PeerAuthentication{},
	"RequestAuthentication": &security.RequestAuthentication{},
	"Telemetry":             &telemetry.Telemetry{},
	"WasmPlugin":            &extensions.WasmPlugin{},
}

// undecodable explains why Istio could not decode a carried object: Istio would silently
// leave the object out. Fields that this version of Istio's API does not know are carried;
// messages of another kind are not.
func undecodable(r *mcpapi.Resource, kind string) (reason string) {
	known, ok := opaque[protoreflect.Name(kind)]
	if !ok {
		return ""
	}
	url := r.GetBody().GetTypeUrl()
	if is := protoreflect.FullName(url[strings.LastIndexByte(url, '/')+1:]); is.Name() != protoreflect.Name(kind) {
		return fmt.Sprintf("%q is not the type of %s: use %s", url, kind, known.ProtoReflect().Descriptor().FullName())
	}
	if err := proto.Unmarshal(r.GetBody().GetValue(), known.ProtoReflect().New().Interface()); err != nil {
		return fmt.Sprintf("cannot be decoded as %s: %v", kind, err)
	}
	return ""
}
