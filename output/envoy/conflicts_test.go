package envoy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/vhost"
)

// serviceSpec is a service of the namespace a that may conflict with others.
type serviceSpec struct {
	host      string
	protocol  string
	number    uint32
	addresses []string
	exportTo  string
	endpoint  string
	namespace string
}

// snapshotOfServices returns a snapshot of services, from the oldest to the newest. The times
// come from an API server.
func snapshotOfServices(services ...serviceSpec) *catalog.Snapshot {
	var events []model.Event
	for n, c := range services {
		key := model.Key{Source: "first", Namespace: "a", Name: fmt.Sprintf("s%d", n)}
		if c.namespace != "" {
			key.Namespace = c.namespace
		}
		s := model.Service{
			Meta: model.Meta{Created: time.Unix(1e9+int64(n), 0)}, Hosts: model.ListOf(c.host), Resolution: model.ResolutionStatic,
			Ports: model.ListOf(model.Port{Number: c.number, Name: "main", Protocol: c.protocol}), Addresses: model.ListOf(c.addresses...),
		}
		if c.exportTo != "" {
			s.ExportTo = model.ListOf(c.exportTo)
		}
		events = append(events, model.Upsert{Record: model.Record{Ref: model.Ref{Kind: model.KindService, Key: key}, Spec: s}})
		if c.endpoint != "" {
			at := key
			at.Name += "/1"
			events = append(events, model.Upsert{Record: owned(model.Record{Ref: model.Ref{Kind: model.KindEndpoint, Key: at}, Spec: model.Endpoint{
				Address: c.endpoint, Ports: model.MapOf(map[string]uint32{"main": 9}),
			}})})
		}
	}
	builder := catalog.NewBuilderIn(dated("first"))
	builder.Apply(1, events)
	return builder.Snapshot()
}

// Each conflict that a service loses is reported for that service, and
// of no other.
func TestConflictsOfServicesAreReported(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		services []serviceSpec
		want     []string // host: field: beginning of the reason
	}{
		{"nothing", []serviceSpec{{host: "a", number: 80, protocol: "HTTP"}, {host: "b", number: 80, protocol: "HTTP"}}, nil},
		{
			"a name",
			[]serviceSpec{{host: "web.a", number: 80, protocol: "HTTP"}, {host: "web.a.svc.cluster.local", number: 80, protocol: "HTTP"}},
			[]string{"web.a.svc.cluster.local: ports[80].domain: requests at port 80 for web.a go to web.a of namespace a in every namespace that sees both, and not to web.a.svc.cluster.local; choose another host"},
		},
		{
			"an address",
			[]serviceSpec{{host: "x", number: 90, protocol: "TCP", addresses: []string{"10.0.0.1"}}, {host: "y", number: 90, protocol: "TCP", addresses: []string{"10.0.0.1", "10.0.0.2"}}},
			[]string{"y: ports[90].addresses: connections to port 90 of 10.0.0.1 go to x of namespace a in every namespace that sees both, and not to y; give it an address"},
		},
		{
			"the address of requests, which are older",
			[]serviceSpec{{host: "x", number: 90, protocol: "HTTP", addresses: []string{"10.0.0.1"}}, {host: "y", number: 90, protocol: "TCP", addresses: []string{"10.0.0.1"}}},
			[]string{"y: ports[90].addresses: connections to port 90 of 10.0.0.1 go to x"},
		},
		{
			"the address of requests, which are younger",
			[]serviceSpec{{host: "x", number: 90, protocol: "TCP", addresses: []string{"10.0.0.1"}}, {host: "y", number: 90, protocol: "HTTP", addresses: []string{"10.0.0.1"}}},
			[]string{"y: ports[90].addresses: connections to port 90 of 10.0.0.1 go to x"},
		},
		{
			"no address",
			[]serviceSpec{{host: "x", number: 90, protocol: "TCP"}, {host: "y", number: 90, protocol: "MONGO"}},
			[]string{"y: ports[90].addresses: connections to port 90 of addresses that no service has go to x"},
		},
		{
			"a block",
			[]serviceSpec{
				{host: "x", number: 90, protocol: "TCP", addresses: []string{"10.1.0.0/16"}},
				{host: "y", number: 90, protocol: "TCP", addresses: []string{"10.1.3.0/16"}},
				{host: "z", number: 90, protocol: "TCP", addresses: []string{"10.1.3.0/24"}},
			},
			[]string{"y: ports[90].addresses: connections to port 90 of 10.1.0.0/16 go to x"},
		},
		{
			"a block around those of requests",
			[]serviceSpec{
				{host: "x", number: 90, protocol: "HTTP", addresses: []string{"10.1.3.0/24", "10.2.0.1"}},
				{host: "y", number: 90, protocol: "TCP", addresses: []string{"10.1.0.0/16"}},
				{host: "z", number: 90, protocol: "HTTP", addresses: []string{"10.1.2.3", "10.1.2.4"}},
			},
			nil,
		},
		{
			"handshakes at an address",
			[]serviceSpec{
				{host: "x.com", number: 443, protocol: "TLS", addresses: []string{"10.0.0.1"}}, {host: "y.com", number: 443, protocol: "TLS", addresses: []string{"10.0.0.1"}},
			},
			nil,
		},
		{
			"requests where handshakes are",
			[]serviceSpec{
				{host: "x.com", number: 443, protocol: "TLS", addresses: []string{"10.0.0.1"}},
				{host: "z.com", number: 443, protocol: "HTTP", addresses: []string{"10.0.0.1"}},
				{host: "y.com", number: 443, protocol: "TLS", addresses: []string{"10.0.0.1"}},
			},
			[]string{"z.com: ports[443].addresses: connections to port 443 of 10.0.0.1 are routed by SNI, as x.com of namespace a needs it in every namespace that sees both, so no requests go to z.com; give it an address"},
		},
		{
			"handshakes of others that not all see",
			[]serviceSpec{
				{host: "x.com", number: 443, protocol: "TLS", addresses: []string{"10.0.0.1"}},
				{host: "y.com", number: 443, protocol: "TLS", addresses: []string{"10.0.0.1"}, namespace: "b", exportTo: "."},
				{host: "z.com", number: 443, protocol: "TCP", addresses: []string{"10.0.0.1"}},
			},
			[]string{"z.com: ports[443].addresses: connections to port 443 of 10.0.0.1 go to x.com of namespace a"},
		},
		{
			"one that is not shut out where another has the host of the older",
			[]serviceSpec{
				{host: "x.com", number: 90, protocol: "HTTP"},
				{host: "y.com", number: 90, protocol: "MYSQL"},
				{host: "z.com", number: 90, protocol: "HTTP"},
				{host: "x.com", number: 91, protocol: "HTTP", namespace: "b"},
			},
			[]string{"y.com: ports[90].protocol: connections to port 90 of addresses without", "z.com: ports[90].protocol: connections to port 90 of addresses without"},
		},
		{
			"a workload",
			[]serviceSpec{
				{host: "x", number: 80, protocol: "HTTP", endpoint: "10.9.0.1"},
				{host: "y", number: 90, protocol: "TCP", endpoint: "10.9.0.1"},
				{host: "z", number: 91, protocol: "HTTP2", endpoint: "10.9.0.1"},
			},
			[]string{"y: ports[90].protocol: sidecars take port 9 of the workload 10.9.0.1 for HTTP, as port 80 of x says, and not for TCP; give"},
		},
		{
			"nobody sees both",
			[]serviceSpec{
				{host: "x", number: 90, protocol: "TCP", exportTo: "."},
				{host: "y", number: 90, protocol: "TCP", exportTo: ".", namespace: "b"},
				{host: "z", number: 90, protocol: "TCP", exportTo: "~"},
			},
			nil,
		},
		{
			"one namespace sees both",
			[]serviceSpec{
				{host: "x", number: 90, protocol: "TCP", exportTo: "."},
				{host: "y", number: 90, protocol: "TCP", exportTo: "a", namespace: "b"},
				{host: "z", number: 90, protocol: "TCP", namespace: "b"},
			},
			[]string{"y: ports[90].addresses: connections to port 90 of addresses that no service has go to x of namespace a", "z: ports[90].addresses: connections to port 90 of addresses that no service has go to x of namespace a"},
		},
		{
			"requests where a server speaks first",
			[]serviceSpec{
				{host: "x", number: 90, protocol: "MYSQL"},
				{host: "y", number: 90, protocol: "HTTP"},
				{host: "z", number: 90, protocol: "TLS"},
				{host: "any", number: 90},
			},
			[]string{
				"any: ports[90].protocol: connections to port 90 of addresses without a listener of their own are not inspected, since the server of x of namespace a may speak first in every namespace that sees both, so none go to any; give",
				"y: ports[90].protocol: connections to port 90 of addresses without a listener of their own are not inspected",
				"z: ports[90].protocol: connections to port 90 of addresses without a listener of their own are not inspected",
			},
		},
		{
			"a server that speaks first where requests are older",
			[]serviceSpec{
				{host: "x", number: 90, protocol: "HTTP"},
				{host: "y", number: 90, protocol: "MONGO"},
				{host: "z", number: 90, protocol: "TCP"}, // it owns the connections of the second
			},
			[]string{"y: ports[90].protocol: connections to port 90 of addresses without a listener of their own are inspected, to find those of x of namespace a in every namespace that sees both, so none go to y, whose server may speak first; give"},
		},
		{
			"a server that speaks first, and has nothing",
			[]serviceSpec{{host: "x", number: 90, protocol: "TCP"}, {host: "y", number: 90, protocol: "MYSQL"}, {host: "z", number: 90, protocol: "HTTP"}},
			[]string{"y: ports[90].addresses: connections to port 90 of addresses that no service has go to x"},
		},
		{
			"a server that speaks first at an address",
			[]serviceSpec{
				{host: "x", number: 90, protocol: "MYSQL", addresses: []string{"10.0.0.1"}},
				{host: "y", number: 90, addresses: []string{"10.0.0.1", "10.0.0.2"}},
				{host: "z", number: 90, protocol: "HTTP"},
				{host: "alone", number: 90, protocol: "TLS", addresses: []string{"10.0.0.2"}},
			},
			[]string{
				"alone: ports[90].addresses: connections to port 90 of 10.0.0.2 go to y",
				"y: ports[90].protocol: connections to port 90 of 10.0.0.1 are not inspected, since the server of x",
			},
		},
		{
			"one host", []serviceSpec{{host: "x", number: 90, protocol: "TCP"}, {host: "x", number: 90, protocol: "TCP", namespace: "b"}}, nil,
		},
	}
	settings := NewTranslator()
	settings.Unaddressed = policy.AllUnaddressed
	settings.Edge.Ports = []policy.EdgePort{{Number: 8080, Protocol: policy.EdgeHTTP, Hosts: []string{"*"}}, {Number: 7000, Protocol: policy.EdgeTCP, Hosts: []string{"x"}}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := conflictsSaid(snapshotOfServices(test.services...), settings)
			if len(got) != len(test.want) {
				t.Fatalf("%d conflicts, not %d:\n%s", len(got), len(test.want), strings.Join(got, "\n"))
			}
			for i, want := range test.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("-wanted +got: %s", gocmp.Diff(want, got[i]))
				}
			}
		})
	}
}

func conflictsSaid(s *catalog.Snapshot, settings *Translator) (said []string) {
	of := settings.Conflicts(context.Background(), s)
	for service := range s.Services() {
		for _, c := range slices.DeleteFunc(slices.Clone(of(service)), catalog.Conflict.Alone) {
			said = append(said, fmt.Sprintf("%s: %s: %s", service.Key.Host, c.Field, c.Reason))
		}
	}
	slices.Sort(said)
	return said
}

// A service has a conflict about a domain if, and only if, it lacks the domain in some
// view.
func TestLostDomainsAreThoseThatSomeViewLacks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		builder := catalog.NewBuilderIn(ruled)
		for revision := range uint64(rapid.IntRange(1, 4).Draw(t, "steps")) {
			builder.Apply(revision+1, rapid.SliceOfN(rapid.Custom(drawSimilarService), 1, 8).Draw(t, "events"))
			compareLosses(t, builder.Snapshot())
		}
	})
}

// compareLosers compares the losers of a snapshot without endpoints, edges and inbound ports
// with the conflicts of each of its services.
func compareLosers(t *rapid.T, settings *Translator, snapshot *catalog.Snapshot) {
	losers := maps.Collect(settings.Losers(t.Context(), snapshot, false))
	of := settings.Conflicts(t.Context(), snapshot)
	for s := range snapshot.Services() {
		list := of(s)
		if first, loses := losers[s.Key]; loses != (len(list) > 0) || loses && !slices.Contains(list, first) {
			t.Errorf("%s is among the losers: %t with %v, and has the conflicts %v", s.Key, loses, first, list)
		}
		delete(losers, s.Key)
	}
	if len(losers) > 0 {
		t.Errorf("there are losers that are no services: %v", losers)
	}
}

func compareLosses(t *rapid.T, snapshot *catalog.Snapshot) {
	compareLosers(t, NewTranslator(), snapshot)
	w, of := NewWorld(snapshot, true, "root"), NewTranslator().Conflicts(t.Context(), snapshot)
	lost := map[catalog.ServiceKey]map[string]bool{}
	for _, client := range sidecarsOf("", "n", "m", "other") {
		v := w.View(RouteType, client).(View)
		if v.proxy.Cluster == "" && len(snapshot.AddressClusters()) > 0 {
			continue // nobody is owed an address without saying the cluster
		}
		for key, domains := range lackedBy(snapshot, v) {
			if lost[key] == nil {
				lost[key] = map[string]bool{}
			}
			for _, domain := range domains {
				lost[key][domain] = true
			}
		}
	}
	for s := range snapshot.Services() {
		said := map[string]bool{}
		for _, c := range of(s) {
			names, isDomain := strings.CutPrefix(c.Reason, "requests at port 80 for ")
			if names, _, _ = strings.Cut(names, " go to "); !isDomain {
				continue
			}
			for name := range strings.SplitSeq(names, ", ") {
				said[name] = true
			}
		}
		if want := lost[s.Key]; len(want)+len(said) > 0 && !gocmp.Equal(want, said) {
			t.Fatalf("%v lacks %v, and said are %v", s.Key, want, said)
		}
	}
}

// lackedBy are the domains that services of a view do not have there.
func lackedBy(snapshot *catalog.Snapshot, v View) map[catalog.ServiceKey][]string {
	has := map[string][]string{}
	for _, host := range plainRoutes(snapshot, v, 80).GetVirtualHosts() {
		has[host.GetName()] = host.GetDomains()
	}
	lacked := map[catalog.ServiceKey][]string{}
	for s := range snapshot.Port(80).Visible(v.viewer()) {
		port, _ := s.Port(80)
		if kind := reach.TrafficOf(port); kind != reach.HTTP && kind != reach.Detected {
			continue
		}
		_, namespace, short := names.ShortName(s.Key.Host, v.proxy.Domain)
		var own []string
		for domain := range vhost.DomainsOf(s, v.proxy.Domain, v.proxy.Cluster, short && namespace == v.Namespace) {
			again := slices.ContainsFunc(own, func(d string) bool { return strings.EqualFold(d, domain) })
			foreign := s.ForeignIn(v.proxy.Cluster) && slices.Contains(requestAddresses, domain) && domain != s.Key.Host
			if own = append(own, domain); !again && !foreign && !slices.Contains(has[names.Listener(s.Key.Host, 80)], domain) {
				lacked[s.Key] = append(lacked[s.Key], domain)
			}
		}
	}
	return lacked
}

// A service has a conflict where, and only where, some call of it from a namespace that sees it
// reaches another service, or nobody. What it loses without "unaddressed: all" is said before.
func TestServicesThatCallsDoNotReachHaveConflicts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		settings := NewTranslator()
		settings.Unaddressed = rapid.SampledFrom([]string{policy.NoUnaddressed, policy.AllUnaddressed}).Draw(t, "unaddressed")
		var services []serviceSpec
		for n := range rapid.IntRange(1, 6).Draw(t, "services") {
			services = append(services, serviceSpec{
				host: fmt.Sprintf("s%d.example", n), number: 90,
				protocol: rapid.SampledFrom([]string{"MYSQL", "TCP", "HTTP", "HTTP", "TLS", "TLS", ""}).Draw(t, "protocol"),
				addresses: rapid.SampledFrom([][]string{ // none has both addresses and blocks
					nil, nil,
					{"10.0.0.1"},
					{"10.0.0.2"},
					{"10.0.0.1", "10.0.0.2"},
					{"10.1.0.0/16"},
					{"10.1.1.0/24"},
					{"10.1.1.7"},
					{"10.1.1.7", "10.0.0.1"},
					{"10.1.0.0/16", "10.1.1.0/24"},
					{"10.1.0.0/16", "0.0.0.0/0"},
					{"0.0.0.0/0"},
				}).Draw(t, "addresses"),
				namespace: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"), exportTo: rapid.SampledFrom([]string{"", "", ".", "b"}).Draw(t, "exportTo"),
			})
		}
		now := snapshotOfServices(services...)
		compareLosers(t, settings, now)
		missed, kept := map[string]string{}, map[string]bool{}
		later := *settings
		later.Unaddressed = policy.NoUnaddressed
		nobodys := call{"10.200.0.1", 90, "anything", ""}
		for _, namespace := range []string{"a", "b", "third"} {
			calls := newCaller(t, worldUnder(settings.Prepare(), now, true, "root", nil), sidecarIn(namespace), "0.0.0.0")
			after := newCaller(t, worldUnder(later.Prepare(), now, true, "root", nil), sidecarIn(namespace), "0.0.0.0")
			if to := calls.reaches(nobodys); to != after.reaches(nobodys) {
				kept[to] = true
			}
			for s := range now.Port(90).Visible(catalog.Viewer{Namespace: namespace}) {
				for _, is := range callsOf(s) {
					port, _ := s.Port(90)
					passes := is == nobodys && settings.Unaddressed == policy.NoUnaddressed // to the instance that it is for
					if passes && reach.ServerFirst(port) {
						continue // which has a listener
					}
					if to := calls.reaches(is); to != names.Cluster(s.Key.Host, 90) && !(passes && (to == "" || to == names.Passthrough)) {
						missed[s.Key.Host] = fmt.Sprintf("%v from %s reaches %s", is, namespace, to)
					}
				}
			}
		}
		of := settings.Conflicts(t.Context(), now)
		for s := range now.Services() {
			list := slices.Clone(of(s))
			all := len(list)
			list = slices.DeleteFunc(list, catalog.Conflict.Alone)
			if said := len(list) < all; said != kept[names.Cluster(s.Key.Host, 90)] {
				t.Errorf("%s: said to have connections for nobody: %v", s.Key.Host, said)
			}
			if port, _ := s.Port(90); reach.TrafficOf(port) == reach.Detected { // requests for its address come to the address
				list = slices.DeleteFunc(list, func(c catalog.Conflict) bool { return c.Field == "ports[90].domain" })
			}
			if why, is := missed[s.Key.Host]; is != (len(list) > 0) {
				t.Errorf("%s: %d conflicts %v, and %s", s.Key.Host, len(list), list, why)
			}
		}
	})
}

// callsOf are calls of a service at its own addresses, and those that name it at addresses of
// nobody and in blocks.
func callsOf(s catalog.ServiceDefinition) (list []call) {
	own := slices.Collect(s.OwnAddressesIn(""))
	for block := range s.BlocksIn("") {
		own = append(own, block.Addr().Next().Next().String())
	}
	port, _ := s.Port(90)
	kind := reach.TrafficOf(port)
	if len(own) == 0 {
		own = []string{"10.200.0.1"}
	}
	for _, address := range own {
		switch kind {
		case reach.HTTP, reach.Detected:
			list = append(list, call{address, 90, "GET", s.Key.Host})
		case reach.TLS:
			list = append(list, call{address, 90, "hello", s.Key.Host})
		case reach.TCP, reach.NotTCP:
		}
		if kind == reach.TCP || kind == reach.Detected {
			list = append(list, call{address, 90, "anything", ""})
		}
	}
	hasAddresses := len(slices.Collect(s.OwnAddressesIn(""))) > 0
	for _, elsewhere := range []string{"10.200.0.1", "10.1.0.2", "10.1.1.2"} {
		switch {
		case kind == reach.HTTP:
			list = append(list, call{elsewhere, 90, "GET", s.Key.Host})
		case kind == reach.TLS && !hasAddresses:
			list = append(list, call{elsewhere, 90, "hello", s.Key.Host})
		}
	}
	if kind == reach.HTTP {
		for address := range s.OwnAddressesIn("") {
			list = append(list, call{"10.200.0.1", 90, "GET", address})
		}
	}
	return list
}

// An object never conflicts with itself: its author gave several hosts one address. But a
// host that stands in for endpoints is an endpoint of its own, which calls to another host do not reach.
func TestAnObjectDoesNotConflictWithItself(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"TCP", "TLS", "HTTP", "", "MySQL"} {
		for _, resolution := range []model.Resolution{model.ResolutionStatic, model.ResolutionNone, model.ResolutionDNS} {
			t.Run(fmt.Sprint(protocol, resolution), func(t *testing.T) {
				t.Parallel()
				object := asking("a", 0, 256, 1, 1, protocol).(model.Upsert)
				spec := object.Record.Spec.(model.Service)
				spec.Resolution = resolution
				object.Record.Spec = spec
				losers := map[catalog.ServiceKey]bool{}
				for key := range NewTranslator().Losers(t.Context(), combined([]model.Event{object}).builder.Snapshot(), false) {
					losers[key] = true
				}
				want := 0
				if resolution == model.ResolutionDNS && protocol != "TLS" {
					want = 255
				}
				if len(losers) != want {
					t.Errorf("%d hosts lose, want %d", len(losers), want)
				}
			})
		}
	}
}
