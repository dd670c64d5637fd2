package envoy

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	dnsfilterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/udp/dns_filter/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// answersTo reads what a client's listener answers, by name, and fails if Envoy would not
// take it.
func answersTo(t failing, w world.World, c world.Client) (map[string][]string, world.Version) {
	t.Helper()
	subject, ok := w.Find(w.View(ListenerType, c), ListenerType, "dns")
	if !ok {
		t.Fatal("there is no listener for lookups")
	}
	encoded := subject.Encode()
	m := message(t, encoded.Joined().Body).(*listenerv3.Listener)
	var filter dnsfilterv3.DnsFilterConfig
	if err := m.GetListenerFilters()[0].GetTypedConfig().UnmarshalTo(&filter); err != nil {
		t.Fatal(err)
	}
	if err := m.ValidateAll(); err != nil {
		t.Fatal(err)
	}
	if err := filter.ValidateAll(); err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, d := range filter.GetServerConfig().GetInlineDnsTable().GetVirtualDomains() {
		if _, twice := found[d.GetName()]; twice || d.GetName() != strings.ToLower(d.GetName()) {
			t.Fatal(d.GetName() + " is there twice, or not in lower case")
		}
		found[d.GetName()] = d.GetEndpoint().GetAddressList().GetAddress()
	}
	return found, encoded.Version
}

func answeringSettings() *Translator {
	s := NewTranslator()
	s.DNS = &policy.DNS{}
	s.DNS.SetDefaults()
	return s
}

// TestLookupsAreAnsweredWhereCallsArrive has services of each form, and what is answered
// to sidecars by how connections reach them.
func TestLookupsAreAnsweredWhereCallsArrive(t *testing.T) {
	t.Parallel()
	on := func(number uint32, protocol string) model.Port {
		return model.Port{Number: number, Name: "p" + protocol, Protocol: protocol}
	}
	static, age := model.ResolutionStatic, time.Duration(0)
	at := func(host string, resolution model.Resolution, addresses []string, ports ...model.Port) model.Event {
		age += time.Minute // each is older than those before
		u := edgeService(host, age, resolution, ports...).(model.Upsert)
		spec := u.Record.Spec.(model.Service)
		spec.Addresses = model.ListOf(addresses...)
		u.Record.Spec = spec
		return u
	}
	builder := catalog.NewBuilderIn(dated("s", "first", "files"))
	builder.Apply(1, []model.Event{
		at("vip.com", static, []string{"10.1.0.1", "fd00::1", "10.9.0.0/16"}, on(80, "HTTP"), on(9000, "TCP")),
		at("block.com", static, []string{"10.8.0.0/16"}, on(9100, "TCP")),
		at("WEB.com", static, nil, on(80, "HTTP")),
		at("any-newer.com", static, nil, on(81, "")), // what is no request goes to the older one
		at("any.com", static, nil, on(81, "")),
		at("tls.com", static, nil, on(443, "TLS")),
		at("newer.com", static, nil, on(9000, "TCP"), on(80, "HTTP")),
		at("older.com", static, nil, on(9000, "TCP")),
		at("udp.com", static, nil, on(5000, "UDP")),
		at("udp-vip.com", static, []string{"10.1.0.2"}, on(5000, "UDP")),
		at("external.com", model.ResolutionDNS, nil, on(80, "HTTP")),
		at("external-vip.com", model.ResolutionDNS, []string{"10.1.0.3"}, on(80, "HTTP")),
		at("none.com", model.ResolutionNone, nil, on(80, "HTTP")),
		at("zero.com", static, []string{"0.0.0.0"}, on(80, "HTTP")),
		at("*.wild.com", static, nil, on(80, "HTTP")),
		at("a.b.svc.cluster.local", static, nil, on(80, "HTTP")),
		at("a.b", static, []string{"10.1.0.4"}, on(80, "HTTP")), // the oldest
		at("no_name/.com", static, nil, on(80, "HTTP")),
		at("dot.com.", static, nil, on(80, "HTTP")),
		at("10.1.0.5", static, nil, on(80, "HTTP")),
		at(strings.Repeat("x", 64)+".com", static, nil, on(80, "HTTP")),
		at("behind-db.com", static, nil, on(9200, "HTTP")), // nothing is read there, and so no requests are found
		at("db.com", static, nil, on(9200, "MYSQL")),
		at("web.c.svc.cluster.local", static, nil, on(444, "TLS")), // no handshake for a short name is its own
	})
	u := answeringSettings().Begin(nil)(builder.Snapshot(), catalog.Change{}, true, "istio-system")
	nowhere := []string{names.UnroutableIPv4}
	own := func(host string) []string { return []string{names.AllotmentOf(host).IPv4()} }
	redirected := map[string][]string{
		"vip.com": {"10.1.0.1", "fd00::1"}, "web.com": nowhere, "any.com": own("any.com"), "tls.com": nowhere, "older.com": own("older.com"),
		"any-newer.com": own("any-newer.com"), "newer.com": own("newer.com"), "behind-db.com": nowhere,
		"udp-vip.com": {"10.1.0.2"}, "external-vip.com": {"10.1.0.3"}, "zero.com": nowhere, "*.wild.com": nowhere,
		"a.b.svc.cluster.local": nowhere, "a.b.svc": nowhere, "a.b": {"10.1.0.4"},
		"db.com": own("db.com"), "web.c.svc.cluster.local": nowhere, "dot.com": nowhere,
	}
	withOwn := maps.Clone(redirected)
	withOwn["a"] = nowhere
	only := func(of map[string][]string, instead string, keep func(string) bool) map[string][]string {
		list := map[string][]string{}
		for host, addresses := range of {
			if addresses = slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return a != names.UnroutableIPv4 && !keep(a) }); len(addresses) > 0 {
				list[host] = addresses
				if addresses[0] == names.UnroutableIPv4 {
					list[host] = []string{instead}
				}
			}
		}
		return list
	}
	ipv4 := only(redirected, names.UnroutableIPv4, func(a string) bool { return !strings.Contains(a, ":") })
	ipv6 := only(redirected, names.UnroutableIPv6, func(a string) bool { return strings.Contains(a, ":") })
	for _, host := range []string{"any.com", "any-newer.com", "newer.com", "older.com", "db.com"} {
		ipv6[host] = []string{names.AllotmentOf(host).IPv6()}
	}
	ipv6["a.b"] = []string{names.UnroutableIPv6} // requests name the host
	bound := map[string][]string{}               // newer.com and vip.com share a port with an older one
	for _, host := range []string{"web.com", "any.com", "tls.com", "older.com", "zero.com", "block.com", "*.wild.com", "a.b.svc.cluster.local", "a.b.svc", "a.b", "db.com", "dot.com", "web.c.svc.cluster.local"} {
		bound[host] = []string{names.LocalIPv4}
	}
	for name, test := range map[string]struct {
		namespace string
		proxy     world.Proxy
		addresses []string
		want      map[string][]string
	}{
		"redirected":    {"a", world.Proxy{Role: "sidecar"}, nil, redirected},
		"own namespace": {"b", world.Proxy{Role: "sidecar", Interception: "TPROXY"}, nil, withOwn},
		"of IPv4":       {"a", world.Proxy{Role: "sidecar"}, []string{"10.0.0.9"}, ipv4},
		"of IPv6":       {"a", world.Proxy{Role: "sidecar"}, []string{"fd00::9"}, ipv6},
		"not at all":    {"a", world.Proxy{Role: "sidecar", Interception: "NONE", Outbound: world.AllPorts()}, nil, bound},
	} {
		got, _ := answersTo(t, u.World, world.Client{Kind: reach.KindEnvoy, Namespace: test.namespace, Proxy: test.proxy, Addresses: test.addresses})
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	router := world.Client{Kind: reach.KindEnvoy, Namespace: "a", Proxy: world.Proxy{Role: "router"}}
	if _, ok := u.World.Find(u.World.View(ListenerType, router), ListenerType, "dns"); ok {
		t.Error("the edge answers lookups")
	}
}
