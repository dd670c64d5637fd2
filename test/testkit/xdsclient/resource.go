package xdsclient

import (
	"crypto/sha256"
	"errors"
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// The types of resources a client knows.
const (
	CDS = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	EDS = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	LDS = "type.googleapis.com/envoy.config.listener.v3.Listener"
	RDS = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	SDS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
)

// short is how a transcript calls a type.
func short(typeURL string) string {
	switch typeURL {
	case CDS:
		return "CDS"
	case EDS:
		return "EDS"
	case LDS:
		return "LDS"
	case RDS:
		return "RDS"
	case SDS:
		return "SDS"
	default:
		return fmt.Sprintf("%q", typeURL)
	}
}

// isWhole reports whether a state-of-the-world response of the type is the
// full set, in which absence is deletion.
func isWhole(typeURL string) bool { return typeURL == CDS || typeURL == LDS }

// Resource is one resource as a client received it. It is not to be changed.
type Resource struct {
	Type, Name string
	Version    string // in the delta variant
	Content    proto.Message

	digest [sha256.Size]byte // of the encoded content
}

// newResource decodes what a response carries.
func newResource(typeURL string, body *anypb.Any) (Resource, error) {
	if body == nil {
		return Resource{}, errors.New("a resource without content")
	}
	if body.GetTypeUrl() != typeURL {
		return Resource{}, fmt.Errorf("a resource of type %s in a response of type %s", short(body.GetTypeUrl()), short(typeURL))
	}
	content, err := body.UnmarshalNew()
	if err != nil {
		return Resource{}, fmt.Errorf("a resource that cannot be decoded: %w", err)
	}
	r := Resource{Type: typeURL, Name: nameOf(content), Content: content, digest: sha256.Sum256(body.GetValue())}
	if r.Name == "" {
		return Resource{}, errors.New("a resource without a name")
	}
	return r, nil
}

func nameOf(m proto.Message) string {
	switch m := m.(type) {
	case *clusterv3.Cluster:
		return m.GetName()
	case *corev3.TypedExtensionConfig:
		return m.GetName()
	case *endpointv3.ClusterLoadAssignment:
		return m.GetClusterName()
	case *listenerv3.Listener:
		return m.GetName()
	case *routev3.RouteConfiguration:
		return m.GetName()
	case *routev3.VirtualHost:
		return m.GetName()
	case *tlsv3.Secret:
		return m.GetName()
	default:
		return ""
	}
}

// Decode is what a client makes of the bytes of an encoded Any.
func Decode(body []byte) (Resource, error) {
	var carried anypb.Any
	if err := proto.Unmarshal(body, &carried); err != nil {
		return Resource{}, err
	}
	return newResource(carried.GetTypeUrl(), &carried)
}

// Sum is a number that goes with the content.
func (r Resource) Sum() int { return int(r.digest[0]) }

// IsEncodedAs reports whether the resource came as exactly these bytes, which
// are those of an encoded Any.
func (r Resource) IsEncodedAs(body []byte) bool {
	var other anypb.Any
	return proto.Unmarshal(body, &other) == nil && sha256.Sum256(other.GetValue()) == r.digest
}

// WantsAssignment reports whether a resource is a cluster whose endpoints come
// as a load assignment.
func (r Resource) WantsAssignment() bool {
	cluster, ok := r.Content.(*clusterv3.Cluster)
	return ok && cluster.GetType() == clusterv3.Cluster_EDS
}

// RouteName returns the route configuration that a listener leads to; empty if
// it leads to none.
func (r Resource) RouteName() string {
	listener, ok := r.Content.(*listenerv3.Listener)
	if !ok || listener.GetApiListener() == nil {
		return ""
	}
	var manager hcmv3.HttpConnectionManager
	if err := listener.GetApiListener().GetApiListener().UnmarshalTo(&manager); err != nil {
		return ""
	}
	return manager.GetRds().GetRouteConfigName()
}

// ClusterNames returns the clusters that a route configuration leads to.
func (r Resource) ClusterNames() []string {
	config, ok := r.Content.(*routev3.RouteConfiguration)
	if !ok {
		return nil
	}
	var names []string
	for _, host := range config.GetVirtualHosts() {
		for _, route := range host.GetRoutes() {
			if name := route.GetRoute().GetCluster(); name != "" { // else Envoy answers by itself
				names = append(names, name)
			}
		}
	}
	return names
}
