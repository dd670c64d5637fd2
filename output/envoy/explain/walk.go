package explain

import (
	"fmt"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Reader returns the newest resource of a type and name for one client; nil if there is none.
type Reader func(typeURL, name string) *world.Encoded

// walk follows a call through resources, and notes them on its way.
type walk struct {
	World
	viewer catalog.Viewer
	trace  *output.Trace
}

// take reads a resource into a message, and adds it to the way. It returns false if there is
// none.
func (w walk) take(typeURL, name string, into proto.Message) bool {
	passed := output.ResourceName{Type: typeURL, Name: name}
	is := w.Read(typeURL, name)
	if is != nil {
		passed.Version = is.Version.String()
	}
	w.trace.Resources = append(w.trace.Resources, passed)
	return is != nil && unpack(is.Body, into)
}

// peek reads a resource that may not exist. The way has it only if it does.
func (w walk) peek(typeURL, name string, into proto.Message) bool {
	return w.Read(typeURL, name) != nil && w.take(typeURL, name, into)
}

func unpack(body []byte, into proto.Message) bool {
	var packed anypb.Any
	return proto.Unmarshal(body, &packed) == nil && packed.UnmarshalTo(into) == nil
}

// destination is where filters lead a call.
type destination struct {
	cluster string
	refused string // why the call ends here; empty if it goes to the cluster
}

// listener follows a connection through the listener of its address, or otherwise through the
// listener that services of the port share. ok is false if there is neither.
func (w walk) listener(o opening, shared string) (to destination, ok bool) {
	var l listenerv3.Listener
	name := names.Socket(o.address, o.port)
	if !w.peek(wire.ListenerURL, name, &l) {
		name = names.Socket(shared, o.port)
		if !w.peek(wire.ListenerURL, name, &l) {
			return destination{}, false
		}
	}
	w.trace.Pass("listener", "listener "+name)
	return w.chain(chainFor(&l, o), o), true
}

// chain follows the filters of a chain.
func (w walk) chain(c *listenerv3.FilterChain, o opening) destination {
	for _, f := range c.GetFilters() {
		var connection tcpv3.TcpProxy
		var requests hcmv3.HttpConnectionManager
		switch config := f.GetTypedConfig(); {
		case config.UnmarshalTo(&connection) == nil:
			return destination{cluster: connection.GetCluster()}
		case config.UnmarshalTo(&requests) == nil:
			return w.routes(&requests, o.host)
		}
	}
	return destination{refused: fmt.Sprintf("the listener has no filter chain for %s of this kind, so Envoy closes the connection", o.kind)}
}

// routes follows a request through the route configuration of a connection manager.
func (w walk) routes(m *hcmv3.HttpConnectionManager, authority string) destination {
	routes, name := m.GetRouteConfig(), m.GetRds().GetRouteConfigName()
	if routes == nil {
		routes = &routev3.RouteConfiguration{}
		if !w.take(wire.RouteURL, name, routes) {
			return destination{refused: "the route configuration " + name + " has no virtual host, so Envoy answers 404"}
		}
	}
	host := virtualHostFor(routes.GetVirtualHosts(), authority)
	if routes.GetVhds() != nil {
		if single := w.singleHost(name, authority); single != nil {
			host = single
		}
	}
	if host == nil {
		return destination{refused: fmt.Sprintf("no virtual host of the route configuration %s has the domain %q, so Envoy answers 404", name, authority)}
	}
	w.trace.Pass("route", fmt.Sprintf("virtual host %s of the route configuration %s", host.GetName(), name))
	if cluster := clusterOf(host, blockClusterOf(m)); cluster != "" {
		return destination{cluster: cluster}
	}
	return destination{refused: fmt.Sprintf("the virtual host %s has no route to a cluster, so the proxy answers with an error", host.GetName())}
}

// singleHost returns the virtual host of a request, where hosts are sent one by one; nil if
// none has its domain. Usually it is the service's own. Otherwise another service may have
// the domain, and all that the client sees are asked.
func (w walk) singleHost(routes, authority string) *routev3.VirtualHost {
	if own := w.hostOf(routes, w.trace.Service.Key.Host); virtualHostFor(own, authority) != nil {
		w.note(routes, w.trace.Service.Key.Host)
		return own[0]
	}
	var all []*routev3.VirtualHost
	for s := range w.Snapshot.Visible(w.viewer) {
		all = append(all, w.hostOf(routes, s.Key.Host)...)
	}
	found := virtualHostFor(all, authority)
	if found != nil {
		w.note(routes, strings.TrimPrefix(found.GetName(), routes+"/"))
	}
	return found
}

// hostOf returns the virtual host of a service, if there is one.
func (w walk) hostOf(routes, host string) []*routev3.VirtualHost {
	is := w.Read(wire.VirtualHostURL, routes+"/"+host)
	var m routev3.VirtualHost
	if is == nil || !unpack(is.Body, &m) {
		return nil
	}
	return []*routev3.VirtualHost{&m}
}

// note adds the virtual host of a service to the way.
func (w walk) note(routes, host string) {
	w.take(wire.VirtualHostURL, routes+"/"+host, &routev3.VirtualHost{})
}

// blockClusterOf returns the cluster that a connection manager writes into a header of its
// requests; empty if it writes none.
func blockClusterOf(m *hcmv3.HttpConnectionManager) string {
	for _, extension := range m.GetEarlyHeaderMutationExtensions() {
		var all headermutationv3.HeaderMutation
		if extension.GetTypedConfig().UnmarshalTo(&all) != nil {
			continue
		}
		for _, one := range all.GetMutations() {
			if value := one.GetAppend().GetHeader().GetValue(); value != "" {
				return value
			}
		}
	}
	return ""
}

// target follows a gRPC client from its target to a cluster.
func (w walk) target(host string, port uint32) destination {
	name := names.Listener(host, port)
	var l listenerv3.Listener
	var requests hcmv3.HttpConnectionManager
	if !w.take(wire.ListenerURL, name, &l) || l.GetApiListener().GetApiListener().UnmarshalTo(&requests) != nil {
		return destination{refused: "there is no listener of the name " + name}
	}
	w.trace.Pass("listener", "listener "+name)
	return w.routes(&requests, name)
}

// endpoints is the number of places at which a cluster serves.
type endpoints struct {
	n        int
	byName   bool // names, which the proxy resolves itself
	original bool // the address that the application connects to
	single   bool // sent one by one, and not counted

	sockets  sockets
	labelled int    // endpoints with the label of mutual TLS
	port     uint32 // of the first endpoint
}

// cluster reads a cluster and its load assignment. ok is false if there is no cluster.
func (w walk) cluster(name string) (at endpoints, ok bool) {
	var c clusterv3.Cluster
	if !w.take(wire.ClusterURL, name, &c) {
		return at, false
	}
	switch c.GetType() {
	case clusterv3.Cluster_ORIGINAL_DST:
		return endpoints{original: true}, true
	case clusterv3.Cluster_EDS:
		var all endpointv3.ClusterLoadAssignment
		assignment := name
		if own := c.GetEdsClusterConfig().GetServiceName(); own != "" {
			assignment = own
		}
		w.take(wire.EndpointURL, assignment, &all)
		at = counted(&all)
	default:
		at = counted(c.GetLoadAssignment())
		at.byName = true
	}
	at.sockets = socketsOf(&c)
	return at, true
}

// counted counts the endpoints that take calls.
func counted(all *endpointv3.ClusterLoadAssignment) (at endpoints) {
	for _, group := range all.GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			if at.n++; at.n == 1 {
				at.port = e.GetEndpoint().GetAddress().GetSocketAddress().GetPortValue()
			}
			if isLabelled(e) {
				at.labelled++
			}
		}
		if group.GetLedsClusterLocalityConfig() != nil {
			at.single = true
		}
	}
	return at
}
