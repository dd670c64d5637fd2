package envoy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/vhost"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

func worldOf(order []string, events ...model.Event) *World {
	builder := catalog.NewBuilderIn(dated(order...))
	builder.Apply(1, events)
	return NewWorld(builder.Snapshot(), true, "istio-system")
}

func TestEveryResourceIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := worldOf([]string{"first"}, rapid.SliceOfN(rapid.Custom(drawEvent), 1, 30).Draw(t, "events")...)
		for at, f := range everything(t, w) {
			m := message(t, f.Body)
			if err := validate(m); err != nil {
				t.Fatalf("%v: %v in %v", at, err, m)
			}
			if cla, ok := m.(*endpointv3.ClusterLoadAssignment); ok {
				if err := acceptable(cla); err != nil {
					t.Fatalf("%v: %v in %v", at, err, cla)
				}
			}
			if c, ok := m.(*clusterv3.Cluster); ok && takesOneName(t, c) {
				if e := c.LoadAssignment.Endpoints; len(e) != 1 || len(e[0].LbEndpoints) != 1 {
					t.Fatalf("%v: not one endpoint in %v", at, c)
				}
			}
		}
	})
}

// takesOneName is of clusters that are connected to as a name resolves.
func takesOneName(t *rapid.T, c *clusterv3.Cluster) bool {
	if c.GetClusterType() == nil {
		return c.GetType() == clusterv3.Cluster_LOGICAL_DNS
	}
	var names dnsv3.DnsCluster
	if err := c.GetClusterType().GetTypedConfig().UnmarshalTo(&names); err != nil {
		t.Fatal(err)
	}
	if err := names.ValidateAll(); err != nil {
		t.Fatal(err)
	}
	return names.GetAllAddressesInSingleEndpoint()
}

// validate applies the generated validation, also to what is packed inside.
func validate(m proto.Message) error {
	if err := m.(interface{ ValidateAll() error }).ValidateAll(); err != nil {
		return err
	}
	switch m := m.(type) {
	case *listenerv3.Listener:
		if m.ApiListener == nil {
			return nil // it has filter chains, which other tests look into
		}
		var hcm hcmv3.HttpConnectionManager
		if err := m.ApiListener.ApiListener.UnmarshalTo(&hcm); err != nil {
			return err
		}
		return hcm.ValidateAll()
	case *clusterv3.Cluster:
		for _, packed := range m.TypedExtensionProtocolOptions {
			var options httpv3.HttpProtocolOptions
			if err := packed.UnmarshalTo(&options); err != nil {
				return err
			}
			return options.ValidateAll()
		}
	}
	return nil
}

func TestBothKindsShareAssignmentsAndNotClusters(t *testing.T) {
	w := worldOf(nil, record("a", "p", model.Service{Ports: model.ListOf(ports[3])}), place1("a", "p", "10.0.0.1"))
	for typ, shared := range map[world.Row]bool{ClusterType: false, EndpointType: true} {
		envoy, _ := w.Find(View{Kind: reach.KindEnvoy, Namespace: "a"}, typ, "outbound|81||h")
		grpc, _ := w.Find(View{Kind: reach.KindGRPC, Namespace: "b"}, typ, "outbound|81||h")
		if envoy == nil || (envoy == grpc) != shared || (envoy.Slot() == grpc.Slot()) != shared {
			t.Errorf("type %d: %v for Envoy, %v for gRPC", typ, envoy, grpc)
		}
	}
}

func TestFindTakesOneSpellingOnly(t *testing.T) {
	w := worldOf(nil, record("a", "p", model.Service{Ports: model.ListOf(ports[3])}))
	v := View{Kind: reach.KindGRPC}
	for typ, names := range map[world.Row][]string{
		ClusterType:  {"outbound|081||h", "outbound|81||H", "outbound|81|v1|h", "outbound|80||h", "h:81", "*", ""},
		ListenerType: {"h:081", "H:81", "h", "h:80", "outbound|81||h"},
	} {
		for _, name := range names {
			if subject, ok := w.Find(v, typ, name); ok {
				t.Errorf("type %d: %q is %v", typ, name, subject)
			}
		}
	}
	if _, ok := w.Find(View{Kind: "mcp"}, ClusterType, "outbound|81||h"); ok {
		t.Error("a client of another kind is given a cluster")
	}
}

func TestEmptyAssignmentHasNoEndpoints(t *testing.T) {
	w := worldOf(nil, record("a", "p", model.Service{Ports: model.ListOf(ports[3])}))
	subject, _ := w.Find(View{Kind: reach.KindEnvoy}, EndpointType, "outbound|81||h")
	is := subject.Encode()
	types := Types(nil)
	empty := types[EndpointType].Empty("outbound|81||h")
	if empty.Version != is.Version || !slices.Equal(empty.Body, is.Body) {
		t.Errorf("empty is %v, a service without endpoints %v", empty, is)
	}
	if types[ClusterType].Empty != nil {
		t.Error("clusters have a empty")
	}
}

func TestEmptyListenersFailAllCalls(t *testing.T) {
	empty := Types(nil)[ListenerType].Empty
	for _, name := range []string{"h", "h:080", ":80", "h\xff:80", strings.Repeat("h", vhost.LongestHost+1) + ":80"} {
		if e := empty(name); e.Body != nil {
			t.Errorf("there is one of %q", name)
		}
	}
	m := message(t, empty("h:81").Body)
	if err := validate(m); err != nil {
		t.Error(err)
	}
	if got := refersIn(ListenerType, empty("h:81").Body, wire.RouteURL); len(got) > 0 {
		t.Errorf("it leads to %q", got)
	}
}

func TestALargeServiceOnSocketsIsNotOfferedToGRPC(t *testing.T) {
	events := []model.Event{record("a", "p", model.Service{Ports: model.ListOf(ports[3])})}
	for i := range 100 {
		e := place1("a", "p", "10.0.0."+string(rune('0'+i%10))+string(rune('0'+i/10%10))).(model.Upsert)
		e.Record.Name = "p/" + string(rune('A'+i))
		events = append(events, e)
	}
	v := View{Kind: reach.KindGRPC}
	addresses, sockets := worldOf(nil, events...), worldOf(nil, append(events, place1("a", "p", "unix:///run/s"))...)
	if _, ok := addresses.Find(v, ClusterType, "outbound|81||h"); !ok {
		t.Error("a service on addresses is not offered")
	}
	if _, ok := sockets.Find(v, ClusterType, "outbound|81||h"); ok {
		t.Error("a service on a socket is offered")
	}
}

// A gRPC client ends the stream of a message above 4 MiB, with all that it has subscribed to. The most endpoints
// that it is offered are one below, however long their addresses.
func TestGRPCIsNotOfferedMoreThanItReads(t *testing.T) {
	t.Parallel()
	events := []model.Event{record("a", "p", model.Service{Ports: model.ListOf(ports[3])})}
	address := func(net, i int) string { return fmt.Sprintf("2001:db8:%x:1111:2222:3333:4444:%x", net+4096, i+8192) }
	for i := range 32_001 {
		e := place1("a", "p", address(0, i)).(model.Upsert)
		spec, _ := e.Record.Spec.(model.Endpoint)
		spec.Also, spec.Weight = model.ListOf(address(1, i)), 1<<20+uint32(i)%2
		e.Record.Name, e.Record.Spec = fmt.Sprint("p/", i), spec
		events = append(events, e)
	}
	builder := catalog.NewBuilder(nil)
	builder.Apply(1, events[:len(events)-1])
	offered := func() (world.Subject, bool) {
		w := worldUnder(policy.Istio, builder.Snapshot(), true, "istio-system", nil)
		return w.Find(w.View(EndpointType, world.Client{Kind: reach.KindGRPC}), EndpointType, "outbound|81||h")
	}
	most, ok := offered()
	if !ok {
		t.Fatal("32,000 endpoints are not offered")
	}
	if size := len(most.Encode().Joined().Body); size > 4<<20-1000 || size < 3<<20 {
		t.Errorf("they are %d bytes", size)
	}
	change := builder.Apply(2, events[len(events)-1:])
	if _, ok := offered(); ok {
		t.Error("one more is offered")
	}
	if service, _ := builder.Snapshot().Resolve(catalog.Viewer{}, "h"); !strings.Contains(reach.NotOffered(service, reach.KindGRPC), "4 MiB") {
		t.Errorf("the reason is %q", reach.NotOffered(service, reach.KindGRPC))
	}
	if changes := Changes(builder.Snapshot(), change); !slices.ContainsFunc(changes, func(c world.Changed) bool { return c.Row == ListenerType && c.Name == "h:81" }) {
		t.Errorf("the listener is not among %v", changes)
	}
}

func TestAHostThatIsNotTextIsNotOffered(t *testing.T) {
	e := record("a", "p", model.Service{Ports: model.ListOf(ports[3])}).(model.Upsert)
	spec := e.Record.Spec.(model.Service)
	spec.Hosts = model.ListOf("h\xff")
	e.Record.Spec = spec
	w := worldOf(nil, e)
	if _, ok := w.Find(View{Kind: reach.KindEnvoy}, ClusterType, "outbound|81||h\xff"); ok {
		t.Error("it is")
	}
	for s := range w.snapshot.Services() {
		if got := reach.NotOffered(s, reach.KindEnvoy); got != reach.BadHost {
			t.Errorf("the reason is %q", got)
		}
	}
}

func TestNotOfferedNamesThePortsItMeans(t *testing.T) {
	for _, test := range []struct {
		kind string
		spec model.Service
		want string
	}{
		{reach.KindEnvoy, model.Service{}, reach.WithoutAnyPorts},
		{reach.KindEnvoy, model.Service{Ports: model.ListOf(ports[0], ports[1])}, ""},
		{reach.KindGRPC, model.Service{Ports: model.ListOf(ports[0], ports[1])}, "port 53: " + reach.GRPCUDP},
		{reach.KindGRPC, model.Service{Ports: model.ListOf(ports[1], ports[3]), Resolution: model.ResolutionNone}, reach.GRPCNone},
		{reach.KindGRPC, model.Service{Ports: model.ListOf(ports[0], ports[3]), Resolution: model.ResolutionNone}, "port 53: " + reach.GRPCUDP + "; port 81: " + reach.GRPCNone},
		{reach.KindEnvoy, model.Service{Ports: model.ListOf(ports[0]), Resolution: "?"}, reach.BadResolution},
		{"mcp", model.Service{Ports: model.ListOf(ports[0])}, reach.UnknownKind},
	} {
		w := worldOf(nil, record("a", "p", test.spec))
		for s := range w.snapshot.Services() {
			if got := reach.NotOffered(s, test.kind); got != test.want {
				t.Errorf("%s %v: %q, want %q", test.kind, test.spec, got, test.want)
			}
		}
	}
}

func TestTypesComeInTheOrderOfTheirDependence(t *testing.T) {
	order := ""
	for _, spec := range Types(nil) {
		_, short, _ := strings.Cut(spec.Name, ".v3.")
		order += short + " "
	}
	if order != "Cluster ClusterLoadAssignment Listener RouteConfiguration Runtime Secret LbEndpoint VirtualHost " {
		t.Error(order)
	}
}
