package envoy

import (
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/isthmus-mesh/isthmus/model"
)

// TestNothingIsReadWhereAServerSpeaksFirst has the older of two services decide whether
// connections are inspected.
func TestNothingIsReadWhereAServerSpeaksFirst(t *testing.T) {
	t.Parallel()
	of := func(name, protocol string, created int64) behind {
		return behind{name: name, created: created, ports: []model.Port{{Number: 9999, Protocol: protocol}}}
	}
	for name, test := range map[string]struct {
		services []behind
		read     bool
	}{
		"MYSQL, then HTTP":    {[]behind{of("db", "MYSQL", 1), of("web", "HTTP", 2)}, false},
		"HTTP, then MYSQL":    {[]behind{of("db", "MYSQL", 2), of("web", "HTTP", 1)}, true},
		"MONGO, then TLS":     {[]behind{of("db", "MONGO", 1), of("web", "TLS", 2)}, false},
		"MYSQL, then any":     {[]behind{of("db", "MYSQL", 1), of("web", "", 2)}, false},
		"TCP, MYSQL and HTTP": {[]behind{of("tcp", "TCP", 1), of("db", "MYSQL", 2), of("web", "HTTP", 3)}, true}, // the second gets nothing
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &listenerv3.Listener{}
			if !readInto(t, oldRule(worldBehind(test.services...)), ListenerType, sidecarAt("10.9.9.9"), "0.0.0.0_9999", m) {
				t.Fatal("there is no listener")
			}
			if read := len(m.GetListenerFilters()) > 0; read != test.read {
				t.Errorf("connections are inspected: %t", read)
			}
		})
	}
}

// TestRequestsToAnAddressAreForItsService has the routes of one service lead there,
// whatever host a request names.
func TestRequestsToAnAddressAreForItsService(t *testing.T) {
	t.Parallel()
	b := behind{name: "web", ports: []model.Port{{Number: 81}}}
	events := b.events()
	up, _ := events[0].(model.Upsert)
	s, _ := up.Record.Spec.(model.Service)
	s.Addresses = model.ListOf("10.0.0.80")
	up.Record.Spec = s
	events[0] = up
	m := &routev3.RouteConfiguration{}
	if !readInto(t, worldOf([]string{"first"}, events...), RouteType, sidecarAt("10.9.9.9"), "web.example:81", m) {
		t.Fatal("there are no routes")
	}
	hosts := m.GetVirtualHosts()
	if len(hosts) != 1 || len(hosts[0].GetDomains()) != 1 || hosts[0].GetDomains()[0] != "*" ||
		hosts[0].GetRoutes()[0].GetRoute().GetCluster() != "outbound|81||web.example" {
		t.Errorf("%v", m)
	}
}
