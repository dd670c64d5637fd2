package envoy

import (
	"slices"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// An Envoy is given no listener that it cannot bind, or that has the address of one of
// its own: it would reject it, or a listener of its bootstrap would be in the way.
func TestNoListenerIsWhereAnEnvoyCannotListen(t *testing.T) {
	t.Parallel()
	const httpPorts = "80 1023 1024 8080 15000 15001 15006 15021 15090"
	settings := answeringSettings()
	settings.DNS.Port = 53
	var events []model.Event
	for number := range strings.SplitSeq(httpPorts, " ") {
		port, _ := names.ParsePort(number)
		settings.Edge.Ports = append(settings.Edge.Ports, policy.EdgePort{Number: int(port), Protocol: policy.EdgeHTTP, Hosts: []string{"*"}})
		events = append(events, edgeService("web-"+number+".com", 0, model.ResolutionStatic, model.Port{Number: port, Name: "http", Protocol: "HTTP"}))
	}
	settings.Edge.Ports = settings.Edge.Ports[:4] // others are not valid there
	called := edgeService("vip.com", 0, model.ResolutionStatic, model.Port{Number: 15021, Name: "tcp", Protocol: "TCP"}).(model.Upsert)
	spec := called.Record.Spec.(model.Service)
	spec.Addresses = model.ListOf("10.1.0.1")
	called.Record.Spec = spec
	builder := catalog.NewBuilder(nil)
	builder.Apply(1, append(events, called))
	w := settings.Begin(nil)(builder.Snapshot(), catalog.Change{}, true, "root").World
	for name, test := range map[string]struct {
		proxy world.Proxy
		want  string
	}{
		"redirected":                     {world.Proxy{Role: "sidecar"}, "0.0.0.0_1023 0.0.0.0_1024 0.0.0.0_15000 0.0.0.0_80 0.0.0.0_8080 10.1.0.1_15021 dns virtualInbound virtualOutbound"},
		"redirected without privileges":  {world.Proxy{Role: "sidecar", Unprivileged: true}, "0.0.0.0_1023 0.0.0.0_1024 0.0.0.0_15000 0.0.0.0_80 0.0.0.0_8080 10.1.0.1_15021 dns virtualInbound virtualOutbound"},
		"bound":                          {world.Proxy{Role: "sidecar", Interception: "NONE", Outbound: world.AllPorts()}, "127.0.0.1_1023 127.0.0.1_1024 127.0.0.1_80 127.0.0.1_8080 dns"},
		"bound without privileges":       {world.Proxy{Role: "sidecar", Interception: "NONE", Outbound: world.AllPorts(), Unprivileged: true}, "127.0.0.1_1024 127.0.0.1_8080"},
		"bound at the ports of the node": {world.Proxy{Role: "sidecar", Interception: "NONE", Outbound: world.PortsOf([]uint16{8080, 80, 15021, 9})}, "127.0.0.1_80 127.0.0.1_8080 dns"},
		"bound at no port":               {world.Proxy{Role: "sidecar", Interception: "NONE"}, "dns"},
		"edge that lists no port":        {world.Proxy{Role: "router", Interception: "NONE"}, "0.0.0.0_1023 0.0.0.0_1024 0.0.0.0_80 0.0.0.0_8080"},
		"edge":                           {world.Proxy{Role: "router"}, "0.0.0.0_1023 0.0.0.0_1024 0.0.0.0_80 0.0.0.0_8080"},
		"edge without privileges":        {world.Proxy{Role: "router", Unprivileged: true}, "0.0.0.0_1024 0.0.0.0_8080"},
	} {
		v := w.View(ListenerType, world.Client{Kind: reach.KindEnvoy, Namespace: "a", Proxy: test.proxy})
		names := slices.Sorted(w.Names(v, ListenerType))
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%s: %s\nnot %s", name, got, test.want)
		}
		for _, other := range []string{"0.0.0.0_15021", "127.0.0.1_15090", "127.0.0.1_80", "0.0.0.0_80", "dns"} {
			if _, found := w.Find(v, ListenerType, other); found != slices.Contains(names, other) {
				t.Errorf("%s: a listener %s is found: %t", name, other, found)
			}
		}
	}
}

// Sidecars whose nodes list different ports share the listener of a port that both list, and
// all routes and clusters.
func TestAListenerOfLoopbackIsSharedWhateverElseIsListed(t *testing.T) {
	t.Parallel()
	builder := catalog.NewBuilder(nil)
	builder.Apply(1, []model.Event{edgeService("web.com", 0, model.ResolutionStatic, model.Port{Number: 80, Name: "http", Protocol: "HTTP"})})
	w := NewTranslator().Begin(nil)(builder.Snapshot(), catalog.Change{}, true, "root").World
	client := func(ports world.Ports) world.Client {
		return world.Client{Kind: reach.KindEnvoy, Namespace: "a", Proxy: world.Proxy{Role: "sidecar", Interception: "NONE", Outbound: ports}}
	}
	of := func(ports world.Ports) world.Subject {
		c := client(ports)
		subject, found := w.Find(w.View(ListenerType, c), ListenerType, "127.0.0.1_80")
		if !found {
			t.Fatalf("there is no listener with %v", ports)
		}
		return subject
	}
	all := of(world.AllPorts())
	for _, ports := range [][]uint16{{80}, {80, 90}} {
		if one := of(world.PortsOf(ports)); one.Slot() != all.Slot() {
			t.Errorf("with %v the listener is another one", ports)
		}
		for _, row := range []world.Row{RouteType, ClusterType, EndpointType, VirtualHostType} {
			if w.View(row, client(world.PortsOf(ports))) != w.View(row, client(world.AllPorts())) {
				t.Errorf("with %v the view of type %d is another one", ports, row)
			}
		}
	}
}
