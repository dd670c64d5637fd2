package istio

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	extensions "istio.io/api/extensions/v1alpha1"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	networkingbeta "istio.io/api/networking/v1beta1"
	security "istio.io/api/security/v1beta1"
	telemetry "istio.io/api/telemetry/v1alpha1"
)

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
