package envoy

import (
	"maps"
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/split"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/pushtest"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// The producer of the resources of services passes what every producer must.
func TestServicesAreAWellBehavedProducer(t *testing.T) {
	pushtest.Run(t, pushtest.Addition{
		Rows:   conforming.Types(nil),
		Begin:  func() pushtest.World { return newMirror() },
		Client: drawProvenClient,
		Name:   drawResourceName,
		Refers: refersIn,
	})
}

// conforming are settings with every kind of port of the edge, of which some are ports of
// services, and with priorities by locality, subsets and TLS.
var conforming = &Translator{policy.Settings{
	Outbound: policy.RegistryOutbound, ClusterDomain: "cluster.local",
	Edge: policy.Edge{Ports: []policy.EdgePort{
		{Number: 80, Protocol: policy.EdgeHTTP, Hosts: []string{"*"}}, {Number: 8080, Protocol: policy.EdgeHTTP, Hosts: []string{"*"}}, {Number: 81, Protocol: policy.EdgeTCP, Hosts: []string{"*"}}, {Number: 8443, Protocol: policy.EdgeTLS, Hosts: []string{"*"}}, {Number: 15443, Protocol: policy.EdgeAutoPassthrough, Hosts: []string{"*"}},
	}},
	Networks: []policy.Network{{Name: "n", Gateways: []policy.Gateway{{Address: "192.0.2.1", Port: 15443}}}, {Name: "o", Gateways: []policy.Gateway{{Address: "192.0.2.2", Port: 15443}, {Address: "192.0.2.3", Port: 15443}}}},
	MTLS:     policy.MTLS{Mode: policy.PermissiveMTLS, Namespaces: map[string]string{"b": policy.StrictMTLS}, Ports: []policy.MTLSPort{{Namespace: "a", Port: 81, Mode: policy.StrictMTLS}, {Namespace: "a", Port: 8081, Mode: policy.DisableMTLS}}},
	DNS:      &policy.DNS{Port: 15053, TTL: policy.LeastTTL},
	Defaults: policy.Policy{OutlierDetection: &policy.OutlierDetection{}},
	Hosts: []policy.HostPolicy{{
		Host: "x.com", Subsets: []policy.Subset{{Name: "v1", Labels: map[string]string{"version": "v1"}}, {Name: "both", Labels: map[string]string{"version": "v2", "app": "it"}}},
		Policy: policy.Policy{
			Retries: &policy.Retries{}, TCPKeepalive: &policy.TCPKeepalive{Probes: 3},
			TLS: &policy.UpstreamTLS{Mode: policy.IstioMutualTLS, CAFile: "/ca.crt", CertificateFile: "/tls.crt", KeyFile: "/tls.key"},
		},
	}, {
		Host: "*.com", Policy: policy.Policy{TLS: &policy.UpstreamTLS{Mode: policy.SimpleTLS, CAFile: "/ca.crt", SubjectAltNames: []string{"y.com"}}},
	}},
}}

// drawProvenClient draws a client that may have proven an account.
func drawProvenClient(t *rapid.T) world.Client {
	c := drawPushClient(t)
	c.Account = rapid.SampledFrom([]string{"", "spiffe://cluster.local/ns/a/sa/web"}).Draw(t, "account")
	return c
}

func drawPushClient(t *rapid.T) world.Client {
	return world.Client{
		Kind:      rapid.SampledFrom([]string{reach.KindEnvoy, reach.KindGRPC, reach.KindGRPCNode}).Draw(t, "kind of client"),
		Namespace: rapid.SampledFrom([]string{"a", "b", "c", ""}).Draw(t, "namespace"),
		Labels:    model.MapOf(map[string]string{"app": "it"}),
		Locality:  model.Locality{Region: rapid.SampledFrom([]string{"", "eu"}).Draw(t, "region"), Zone: "a"},
		Addresses: rapid.SampledFrom([][]string{nil, {"10.0.0.1"}, {"::ffff:10.0.0.2", "10.0.0.1"}, {"fd00::1"}, {"2001:db8::1"}}).Draw(t, "addresses"),
		Network:   rapid.SampledFrom([]string{"", "n"}).Draw(t, "network"),
		Node:      rapid.SampledFrom([]string{"", "node-1", "node-3"}).Draw(t, "node of client"),
		Cluster:   rapid.SampledFrom([]string{"", "east", "west", "north"}).Draw(t, "cluster of client"),
		Proxy: world.Proxy{
			Role:         rapid.SampledFrom([]string{"", "sidecar", "router"}).Draw(t, "role"),
			Interception: rapid.SampledFrom([]string{"", "TPROXY", "NONE"}).Draw(t, "interception"),
			Outbound:     drawOutbound(t),
			Binds:        rapid.SampledFrom([][]world.Bind{nil, {bindAt("10.0.0.1:80", "127.0.0.1:8081")}, {bindAt("127.0.0.1:80", "127.0.0.1:81"), bindAt("[fd00::1]:8081", "[::1]:80")}}).Draw(t, "binds"),
		},
	}
}

// drawOutbound draws the ports that the node of a sidecar lists.
func drawOutbound(t *rapid.T) world.Ports {
	return rapid.SampledFrom([]world.Ports{world.AllPorts(), world.PortsOf([]uint16{80, 3306}), {}}).Draw(t, "outbound")
}

// sharedResourceNames are of listeners and routes that services may share.
var sharedResourceNames = [...][]string{
	ClusterType:  {"outbound_.80_._.x.com", "outbound_.81_.v1_.x.com", names.BlackHole, names.Passthrough, names.InboundPassthrough, "inbound|80||", "inbound|81||", "inbound|8081||"},
	EndpointType: {"outbound_.80_._.x.com", "outbound_.81_.v1_.x.com"},
	ListenerType: {"0.0.0.0_15443", names.VirtualOutbound, names.VirtualInbound, "0.0.0.0_80", "0.0.0.0_81", "127.0.0.1_80", "::_80", "::1_80", "10.0.0.1_80", "fd00::1_8081", "10.1.0.1_80", "fd00::5_81", "0.0.0.0_8443", "::_8080"},
	RouteType:    {"80", "81", "h:80", "x.com:81", "http.80", "http.8080", "http.81"},
}

func drawResourceName(t *rapid.T, r world.Row) string {
	if int(r) < len(sharedResourceNames) && len(sharedResourceNames[r]) > 0 && rapid.Bool().Draw(t, "shared") {
		return rapid.SampledFrom(sharedResourceNames[r]).Draw(t, "name")
	}
	if r == SecretType && rapid.Bool().Draw(t, "secret") {
		return rapid.SampledFrom([]string{"file-root:/ca.crt", "file-cert:/tls.crt~/tls.key"}).Draw(t, "name")
	}
	host, port := rapid.SampledFrom(named).Draw(t, "host"), rapid.SampledFrom([]uint32{53, 80, 81}).Draw(t, "port")
	if serviceTypeOf(r).subsets {
		return names.Subset(host, port, rapid.SampledFrom([]string{"", "v1", "v3"}).Draw(t, "subset"))
	}
	return serviceTypeOf(r).name(host, port)
}

// serviceTypeOf is the type of a row; types without resources of service ports have names
// as clusters.
func serviceTypeOf(r world.Row) serviceType {
	for _, t := range serviceTypes() {
		if t.Row == r {
			return t
		}
	}
	return serviceType{Row: r}
}

// mirror is a catalog that is changed at random. What a client sees of it is worked
// out from all its records at once, and not from one change after the other.
type mirror struct {
	builder  *catalog.Builder
	order    catalog.Order
	settings *policy.Prepared
	records  map[model.Ref]model.Record
	revision uint64
	anew     *World // of the records there are; nil if it was not asked for
	step     func(*catalog.Snapshot, catalog.Change, bool, string) world.Update
	draw     func(*rapid.T) model.Event
	last     *World // the newest, which knows how collections are named
}

var mergeOrder = []string{"first", "second"}

func newMirror() *mirror {
	return &mirror{
		builder: catalog.NewBuilderIn(ruled), order: ruled, records: map[model.Ref]model.Record{},
		step: conforming.Begin(nil), settings: conforming.Prepare(), draw: drawAnyEvent,
	}
}

func (m *mirror) Step(t *rapid.T) world.Update {
	m.revision++
	if rapid.IntRange(0, 5).Draw(t, "a configuration") == 0 {
		m.order.Splits = drawSplits(t)
		return m.take(m.builder.Arrange(m.order))
	}
	events := rapid.SliceOfN(rapid.Custom(m.draw), 1, 4).Draw(t, "events")
	for _, event := range events {
		switch e := event.(type) {
		case model.Upsert:
			m.records[e.Record.Ref] = e.Record
		case model.Delete:
			delete(m.records, e.Record.Ref)
		}
	}
	return m.take(m.builder.Apply(m.revision, events))
}

// drawSplits divides the calls to some services.
func drawSplits(t *rapid.T) map[catalog.ServiceKey]*split.Split {
	splits := map[catalog.ServiceKey]*split.Split{}
	for range rapid.IntRange(0, 2).Draw(t, "splits") {
		key := catalog.ServiceKey{Namespace: rapid.SampledFrom(namespaces).Draw(t, "namespace"), Host: rapid.SampledFrom(hosts).Draw(t, "host")}
		weights := rapid.SampledFrom([][2]uint32{{90, 10}, {50, 50}, {0, 1}, {1, 0}}).Draw(t, "weights")
		splits[key] = &split.Split{NearFirst: rapid.Bool().Draw(t, "near first"), Backends: []model.Backend{
			{Source: "first", Weight: weights[0]}, {Source: "second", Weight: weights[1]},
		}}
	}
	return splits
}

func (m *mirror) take(change catalog.Change) world.Update {
	m.anew = nil
	u := m.step(m.builder.Snapshot(), change, true, "istio-system")
	m.last, _ = u.World.(*World)
	return u
}

// named are the hosts without the one that is also the short name of another: the laws know no resource
// that only a client which names it is sent. TestChangesMissNothing draws both.
var named = hosts[:len(hosts)-1]

// drawAnyEvent draws an event, some of scopes: those of a namespace and of all.
func drawAnyEvent(t *rapid.T) model.Event {
	if rapid.IntRange(0, 7).Draw(t, "of a scope") > 0 {
		event := drawEvent(t)
		if u, ok := event.(model.Upsert); ok {
			if spec, is := u.Record.Spec.(model.Service); is {
				list := slices.DeleteFunc(spec.Hosts.Slice(), func(host string) bool { return !slices.Contains(named, host) })
				if spec.Hosts = model.ListOf(list...); len(list) == 0 {
					spec.Hosts = model.ListOf(named[0])
				}
				u.Record.Spec = spec
				return u
			}
		}
		return event
	}
	r := model.Record{Ref: model.Ref{Kind: model.KindScope, Key: model.Key{
		Source: "first", Namespace: rapid.SampledFrom([]string{"a", "b", "istio-system"}).Draw(t, "scope of"), Name: "s",
	}}}
	if rapid.IntRange(0, 2).Draw(t, "delete") == 0 {
		return model.Delete{Record: r}
	}
	r.Spec = model.Scope{Hosts: model.ListOf(rapid.SampledFrom([]string{"*/*", "./*", "a/*", "*/x.com", "~/*"}).Draw(t, "pattern"))}
	return model.Upsert{Record: r}
}

func (m *mirror) Sees(r world.Row, c world.Client) map[string]world.Encoded {
	if m.anew == nil {
		builder := catalog.NewBuilderIn(m.order)
		var events []model.Event
		for _, ref := range slices.SortedFunc(maps.Keys(m.records), model.Ref.Compare) {
			events = append(events, model.Upsert{Record: m.records[ref]})
		}
		builder.Apply(1, events)
		m.anew = worldUnder(m.settings, builder.Snapshot(), true, "istio-system", (*definitions)(nil).after(builder.Snapshot(), catalog.Change{}, m.settings))
	}
	if m.last.spreads != nil && r == MemberType {
		return m.seesCollections(c)
	}
	all := map[string]world.Encoded{}
	view := m.anew.View(r, c)
	for name := range m.anew.Names(view, r) {
		if subject, ok := m.anew.Find(view, r, name); ok {
			all[name] = m.spreadOr(subject, r, c, name).Encode().Joined()
		}
	}
	return all
}

// refersIn lists what a client reads in a resource.
func refersIn(r world.Row, body []byte, to string) []string {
	m, err := unpack(body)
	if err != nil {
		return nil
	}
	switch m := m.(type) {
	case *clusterv3.Cluster:
		if to == wire.EndpointURL && m.GetType() == clusterv3.Cluster_EDS {
			return []string{m.Name}
		}
		if to == wire.SecretURL {
			return secretsIn(m)
		}
	case *endpointv3.ClusterLoadAssignment:
		if to == wire.MemberURL {
			return collectionsIn(m)
		}
	case *listenerv3.Listener:
		if m.GetApiListener() == nil {
			return reachedThrough(m, to)
		}
		var hcm hcmv3.HttpConnectionManager
		if to == wire.RouteURL && m.GetApiListener().GetApiListener().UnmarshalTo(&hcm) == nil && hcm.GetRds() != nil {
			return []string{hcm.GetRds().GetRouteConfigName()}
		}
	case *routev3.RouteConfiguration:
		if to == wire.ClusterURL {
			return clustersIn(m)
		}
	}
	return nil
}

// secretsIn lists the secrets that a cluster's connections need.
func secretsIn(m *clusterv3.Cluster) (names []string) {
	var tls tlsv3.UpstreamTlsContext
	socket := m.GetTransportSocket()
	for _, match := range m.GetTransportSocketMatches() {
		socket = match.GetTransportSocket()
	}
	if socket.GetTypedConfig().UnmarshalTo(&tls) != nil {
		return nil
	}
	for _, c := range tls.GetCommonTlsContext().GetTlsCertificateSdsSecretConfigs() {
		names = append(names, c.Name)
	}
	return append(names, tls.GetCommonTlsContext().GetCombinedValidationContext().GetValidationContextSdsSecretConfig().GetName())
}

// reachedThrough lists what the filters of a listener lead to.
func reachedThrough(m *listenerv3.Listener, to string) (list []string) {
	for _, c := range append(slices.Clone(m.GetFilterChains()), m.GetDefaultFilterChain()) {
		for _, f := range c.GetFilters() {
			var hcm hcmv3.HttpConnectionManager
			var tcp tcpv3.TcpProxy
			switch {
			case f.GetTypedConfig().UnmarshalTo(&hcm) == nil:
				if to == wire.RouteURL && hcm.GetRds() != nil {
					list = append(list, hcm.GetRds().GetRouteConfigName())
				} else if to == wire.ClusterURL {
					list = append(list, clustersIn(hcm.GetRouteConfig())...)
				}
			case to == wire.ClusterURL && f.GetTypedConfig().UnmarshalTo(&tcp) == nil:
				list = append(list, tcp.GetCluster())
			}
		}
	}
	return list
}

// clustersIn lists the clusters of services. The one for all other requests is there
// from the start, and not among what routes wait for.
func clustersIn(m *routev3.RouteConfiguration) (list []string) {
	for _, host := range m.GetVirtualHosts() {
		for _, route := range host.Routes {
			if name := route.GetRoute().GetCluster(); name != "" && name != names.Passthrough {
				list = append(list, name)
			}
		}
	}
	return list
}

func unpack(body []byte) (proto.Message, error) {
	var packed anypb.Any
	if err := proto.Unmarshal(body, &packed); err != nil {
		return nil, err
	}
	return packed.UnmarshalNew()
}
