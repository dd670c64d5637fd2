package envoy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/conflict"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

func bindAt(at, to string) world.Bind {
	return world.Bind{At: netip.MustParseAddrPort(at), To: netip.MustParseAddrPort(to)}
}

// An Envoy without redirection listens at the binds of its node metadata, for the ports that
// services of its workload have, and forwards to the workload.
func TestExplicitBindsFollowFromTheWorkloadsPorts(t *testing.T) {
	t.Parallel()
	port := func(number, target uint32, protocol string) model.Port {
		return model.Port{Number: number, TargetPort: target, Name: strings.ToLower(protocol) + "-" + protocol, Protocol: protocol}
	}
	w := worldBehind(
		behind{name: "web", ports: []model.Port{port(80, 8080, "HTTP")}},
		behind{name: "raw", ports: []model.Port{port(9090, 0, "TCP")}, created: 1},
		behind{name: "other", ports: []model.Port{port(8080, 0, "HTTP"), port(7000, 0, "HTTP"), port(7001, 0, "HTTP"), port(7002, 0, "HTTP")}, created: 2, endpoint: model.Endpoint{Address: "10.0.0.2"}},
	)
	c := sidecarAt("10.0.0.1")
	c.Proxy.Interception, c.Proxy.Outbound = "NONE", world.AllPorts()
	c.Proxy.Binds = []world.Bind{
		bindAt("127.0.0.1:7000", "127.0.0.1:7001"), // no service of the workload has this port
		bindAt("10.0.0.1:8080", "127.0.0.1:8080"), bindAt("0.0.0.0:9090", "127.0.0.1:9091"),
	}
	listed := slices.Collect(w.Names(w.View(ListenerType, c), ListenerType))
	slices.Sort(listed)
	// At 127.0.0.1:8080 and 7001 the workload listens, and at 7000 its Envoy would.
	if diff := gocmp.Diff([]string{"0.0.0.0_9090", "10.0.0.1_8080", "127.0.0.1_7002", "127.0.0.1_80", "127.0.0.1_9090"}, listed); diff != "" {
		t.Errorf("its listeners are (- want, + got):\n%s", diff)
	}
	if _, clusters := taken(t, w, c); !slices.Equal(clusters, []string{"inbound|8080||", "inbound|9090||"}) {
		t.Errorf("its clusters are %v", clusters)
	}
	for name, want := range map[string]struct {
		chains, filters int
		leads           string
	}{
		"10.0.0.1_8080": {2, 1, "127.0.0.1:8080"}, "0.0.0.0_9090": {1, 0, "127.0.0.1:9091"},
	} {
		l, to := &listenerv3.Listener{}, &clusterv3.Cluster{}
		if !readInto(t, w, ListenerType, c, name, l) {
			t.Fatalf("no listener %s", name)
		}
		leads := slices.Compact(reachedThrough(l, wire.ClusterURL))
		if len(leads) != 1 || !readInto(t, w, ClusterType, c, leads[0], to) {
			t.Fatalf("%s leads to %v", name, leads)
		}
		at := to.GetLoadAssignment().GetEndpoints()[0].GetLbEndpoints()[0].GetEndpoint().GetAddress().GetSocketAddress()
		if got := names.Socket(at.GetAddress(), at.GetPortValue()); got != strings.ReplaceAll(want.leads, ":", "_") {
			t.Errorf("%s leads to %s", name, got)
		}
		if len(l.GetFilterChains()) != want.chains || len(l.GetListenerFilters()) != want.filters || l.GetBindToPort() != nil {
			t.Errorf("%s is %v", name, l)
		}
	}
	for _, name := range []string{"127.0.0.1_7000", "127.0.0.1_7001", "127.0.0.1_8080"} {
		if _, found := w.Find(w.View(ListenerType, c), ListenerType, name); found {
			t.Errorf("there is a listener %s", name)
		}
	}
	c.Namespace = "b" // whose services the workload's are not
	if _, clusters := taken(t, w, c); clusters != nil {
		t.Errorf("in another namespace it has %v", clusters)
	}
}

// A sidecar on loopback has a notice of every port of a service at which it has no
// listener. The notice names the field of the node metadata that decides that.
func TestPortsWithoutAListenerOfLoopbackAreNoticed(t *testing.T) {
	t.Parallel()
	var events []model.Event
	for number, protocol := range map[uint32]string{80: "HTTP", 443: "TLS", 8080: "TCP", 15021: "HTTP", 53: "UDP"} {
		events = append(events, edgeService(fmt.Sprintf("port-%d.example", number), 0, model.ResolutionStatic, model.Port{Number: number, Name: "it", Protocol: protocol}))
	}
	for number := range uint32(20 + 2) {
		hidden := edgeService(fmt.Sprintf("many-%d.example", number), 0, model.ResolutionStatic, model.Port{Number: 20000 + number, Name: "it", Protocol: "HTTP"}).(model.Upsert)
		spec := hidden.Record.Spec.(model.Service)
		spec.ExportTo = model.ListOf("many")
		hidden.Record.Spec = spec
		events = append(events, hidden)
	}
	builder := catalog.NewBuilder(nil)
	builder.Apply(1, events)
	notices := conflict.Notices(builder.Snapshot(), "root")
	for name, test := range map[string]struct {
		namespace string
		proxy     world.Proxy
		want      []string // the object and the setting of each notice
	}{
		"all":                {"b", world.Proxy{Role: "sidecar", Interception: "NONE", Outbound: world.AllPorts()}, []string{"port 15021 at "}},
		"some":               {"b", world.Proxy{Role: "sidecar", Interception: "NONE", Outbound: world.PortsOf([]uint16{80})}, []string{"ports 443, 8080 at ISTHMUS_OUTBOUND", "port 15021 at "}},
		"none":               {"b", world.Proxy{Role: "sidecar", Interception: "NONE"}, []string{"ports 80, 443, 8080 at ISTHMUS_OUTBOUND", "port 15021 at "}},
		"without privileges": {"b", world.Proxy{Role: "sidecar", Interception: "NONE", Outbound: world.AllPorts(), Unprivileged: true}, []string{"ports 80, 443 at UNPRIVILEGED_POD", "port 15021 at "}},
		"many": {"many", world.Proxy{Role: "sidecar", Interception: "NONE", Outbound: world.PortsOf([]uint16{80, 443, 8080})}, []string{
			"port 15021 at ", "ports 20000, 20001, 20002, 20003, 20004, 20005, 20006, 20007, 20008, 20009, 20010, 20011, 20012, 20013, 20014, 20015, 20016, 20017, 20018, 20019 and 2 more at ISTHMUS_OUTBOUND",
		}},
		"redirected": {"b", world.Proxy{Role: "sidecar"}, nil},
		"edge":       {"b", world.Proxy{Role: "router", Interception: "NONE"}, nil},
	} {
		var got []string
		for _, n := range notices(world.Client{Kind: reach.KindEnvoy, Namespace: test.namespace, Proxy: test.proxy}) {
			got = append(got, n.Object+" at "+n.Where)
			if n.Where == "ISTHMUS_OUTBOUND" && !strings.Contains(n.Text, "add the ports to ISTHMUS_OUTBOUND in the node metadata, or write all") {
				t.Errorf("%s: there is no remedy in %q", name, n.Text)
			}
		}
		slices.Sort(got)
		slices.Sort(test.want)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: the notices are %q, not %q", name, got, test.want)
		}
	}
}
