package envoy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/vhost"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// plainRoutes is the route configuration of a port, made directly of all services that
// a viewer sees: the owner has a domain, whatever its case.
func plainRoutes(s *catalog.Snapshot, v View, number uint32) *routev3.RouteConfiguration {
	m := &routev3.RouteConfiguration{Name: names.PortRoutes(number), ValidateClusters: wrapperspb.Bool(false), IgnorePortInHostMatching: true}
	var services []catalog.ServiceDefinition
	for s := range s.Port(number).Visible(v.viewer()) {
		port, _ := s.Port(number)
		if kind := reach.TrafficOf(port); reach.HasCluster(s, number) && (kind == reach.HTTP || kind == reach.Detected) {
			services = append(services, s)
		}
	}
	type round struct {
		address string // or none for names
		foreign bool   // addresses in other clusters come last
	}
	rounds := []round{{}, {"", true}}
	for _, s := range services {
		for domain := range vhost.DomainsOf(s, v.proxy.Domain, v.proxy.Cluster, true) {
			if of := (round{domain, false}); reach.IsAddress(domain) && !slices.Contains(rounds, of) {
				rounds = append(rounds, of, round{domain, true})
			}
		}
	}
	taken, has := map[string]bool{"*": true}, map[catalog.ServiceKey]map[string]bool{}
	for _, is := range rounds {
		for _, s := range owners(is.address, v.proxy.Cluster, v.Namespace, services) {
			_, namespace, short := names.ShortName(s.Key.Host, v.proxy.Domain)
			for domain := range vhost.DomainsOf(s, v.proxy.Domain, v.proxy.Cluster, short && namespace == v.Namespace) {
				isForeign := s.ForeignIn(v.proxy.Cluster) && slices.Contains(requestAddresses, domain) && domain != s.Key.Host
				address := domain
				if !reach.IsAddress(domain) {
					address = ""
				}
				if is == (round{address, isForeign}) && !taken[strings.ToLower(domain)] {
					taken[strings.ToLower(domain)] = true
					if has[s.Key] == nil {
						has[s.Key] = map[string]bool{}
					}
					has[s.Key][domain] = true
				}
			}
		}
	}
	for _, s := range services {
		_, namespace, short := names.ShortName(s.Key.Host, v.proxy.Domain)
		var domains []string // in the order in which they are written
		for domain := range vhost.DomainsOf(s, v.proxy.Domain, v.proxy.Cluster, short && namespace == v.Namespace) {
			if has[s.Key][domain] && !slices.Contains(domains, domain) {
				domains = append(domains, domain)
			}
		}
		if len(domains) > 0 {
			m.VirtualHosts = append(m.VirtualHosts, wire.VirtualHost(names.Listener(s.Key.Host, number), domains, wire.Target{Cluster: names.Cluster(s.Key.Host, number), Policy: v.settings.OrIstio().Of(s.Key.Host)}))
		}
	}
	m.VirtualHosts = append(m.VirtualHosts, wire.OtherHosts(v.settings.OrIstio().RegistryOnly))
	return m
}

// requestAddresses are the addresses of drawn services, as authorities of requests.
var requestAddresses = []string{"10.0.0.1", "10.0.0.2", "[fd00::1]"}

// similarHosts are names that are easily taken for each other.
var similarHosts = []string{
	"a.n.svc.cluster.local", "A.n.svc.cluster.local", "a.m.svc.cluster.local", "b.n.svc.cluster.local", "a.n", "A.N", "a.n.svc", "a", "A",
	"a.", "10.0.0.1", "fd00::1", "*.com", "x.com", "X.com", "c.o.svc.cluster.local",
}

func drawSimilarService(t *rapid.T) model.Event {
	host := rapid.SampledFrom(similarHosts).Draw(t, "host")
	namespace := rapid.SampledFrom([]string{"n", "m"}).Draw(t, "namespace")
	r := model.Record{Ref: model.Ref{Kind: model.KindService, Key: model.Key{
		Source: rapid.SampledFrom(mergeOrder).Draw(t, "source"), Namespace: namespace, Name: host,
	}}}
	if rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
		return model.Delete{Record: r}
	}
	meta := model.Meta{}
	if age := rapid.IntRange(0, 3).Draw(t, "age"); age > 0 {
		meta.Created = time.Unix(int64(age), 0)
	}
	r.Spec = model.Service{
		Meta:  meta,
		Hosts: model.ListOf(host), Resolution: model.ResolutionStatic,
		Addresses: model.ListOf(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "fd00::1"}), 0, 2, rapid.ID).Draw(t, "addresses")...),
		Cluster:   rapid.SampledFrom([]string{"", "", "east", "west"}).Draw(t, "cluster"),
		Ports: model.ListOf(model.Port{
			Number: rapid.SampledFrom([]uint32{80, 80, 80, 81}).Draw(t, "port"), Name: "it",
			Protocol: rapid.SampledFrom([]string{"HTTP", "HTTP", "HTTP", "TCP", ""}).Draw(t, "protocol"),
		}),
		ExportTo: model.ListOf(rapid.SampledFrom([][]string{nil, nil, nil, {"*"}, {"."}, {"m"}, {"~"}}).Draw(t, "exported")...),
	}
	return model.Upsert{Record: r}
}

// What is put together from fragments is what is made directly, after any history and
// for any viewer, and no two contents have one version.
func TestFragmentsMakeTheWholeRouteConfiguration(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		builder := catalog.NewBuilderIn(ruled)
		byVersion := map[world.Version]*routev3.RouteConfiguration{}
		for revision := range uint64(rapid.IntRange(1, 8).Draw(t, "steps")) {
			events := rapid.SliceOfN(rapid.Custom(drawSimilarService), 1, 5).Draw(t, "events")
			if rapid.IntRange(0, 4).Draw(t, "scoped") == 0 {
				events = append(events, model.Upsert{Record: model.Record{
					Ref:  model.Ref{Kind: model.KindScope, Key: model.Key{Source: "first", Namespace: "m", Name: "s"}},
					Spec: model.Scope{Hosts: model.ListOf(rapid.SampledFrom([]string{"*/*", "./*", "n/*", "*/x.com"}).Draw(t, "pattern"))},
				}})
			}
			builder.Apply(revision+1, events)
			if rapid.IntRange(0, 3).Draw(t, "looked at") > 0 {
				compareRoutes(t, builder.Snapshot(), byVersion)
			}
		}
		compareRoutes(t, builder.Snapshot(), byVersion)
	})
}

func compareRoutes(t *rapid.T, snapshot *catalog.Snapshot, byVersion map[world.Version]*routev3.RouteConfiguration) {
	w := NewWorld(snapshot, true, "root")
	for _, client := range sidecarsOf("n", "m", "other") {
		v, namespace := of(w.View(RouteType, client)), client.Namespace+" "+client.Cluster
		for _, number := range []uint32{80, 81} {
			subject, ok := w.Find(v, RouteType, names.PortRoutes(number))
			if !ok {
				continue
			}
			is, isOf := routesIn(t, subject.Encode())
			want := plainRoutes(snapshot, v, number)
			slices.SortFunc(want.VirtualHosts, compareHosts)
			if !proto.Equal(want, is) { // a difference is worth what it costs to show it
				t.Fatalf("port %d seen from %s:\n%s", number, namespace, cmp.Diff(want, is, protocmp.Transform()))
			}
			if last := byVersion[isOf]; last != nil && !proto.Equal(last, is) {
				t.Fatal("two contents have one version")
			}
			byVersion[isOf] = is
		}
	}
}

func sidecarIn(namespace string) world.Client {
	return world.Client{Kind: reach.KindEnvoy, Namespace: namespace, Proxy: world.Proxy{Role: "sidecar"}}
}

// sidecarsOf are some of each namespace in each cluster.
func sidecarsOf(namespaces ...string) (list []world.Client) {
	for _, namespace := range namespaces {
		for _, cluster := range []string{"", "east", "west"} {
			client := sidecarIn(namespace)
			client.Cluster = cluster
			list = append(list, client)
		}
	}
	return list
}

type failing interface {
	Helper()
	Fatal(args ...any)
}

// routesIn reads a route configuration, with its virtual hosts in order.
func routesIn(t failing, e world.Encoded) (*routev3.RouteConfiguration, world.Version) {
	t.Helper()
	if got := len(e.Joined().Body); got != e.Size() {
		t.Fatal("it says that it has ", e.Size(), " bytes and has ", got)
	}
	m, err := unpack(e.Joined().Body)
	if err != nil {
		t.Fatal(err)
	}
	is, _ := m.(*routev3.RouteConfiguration)
	slices.SortFunc(is.GetVirtualHosts(), compareHosts)
	return is, e.Version
}

func compareHosts(a, b *routev3.VirtualHost) int {
	return strings.Compare(a.GetName()+a.GetDomains()[0], b.GetName()+b.GetDomains()[0])
}

// A service that comes is encoded alone: all other bytes are those of the state before,
// and namespaces share them.
func TestServiceThatComesCostsOneFragment(t *testing.T) {
	const services = 2000
	builder := catalog.NewBuilder([]string{"s"})
	builder.Apply(1, kubernetesServices(services, 100))
	before := textsSeenFrom(t, builder.Snapshot(), "ns-7")
	other := textsSeenFrom(t, builder.Snapshot(), "ns-8")
	builder.Apply(2, []model.Event{kubernetesService(services, 100)})
	after := textsSeenFrom(t, builder.Snapshot(), "ns-7")

	if fresh := lacking(before, after); len(fresh) != 2 {
		t.Errorf("%d fragments are new, and not one of the service and one of all other requests", len(fresh))
	}
	if own := lacking(other, after); len(own) != 42 {
		t.Errorf("%d fragments are not shared with another namespace, and not those of either's own 20 services, the new one and all other requests", len(own))
	}
}

// textsSeenFrom are the pieces of the routes of port 80, by where they are in memory.
func textsSeenFrom(t *testing.T, s *catalog.Snapshot, namespace string) map[*byte]string {
	t.Helper()
	w := NewWorld(s, true, "root")
	subject, ok := w.Find(w.View(RouteType, sidecarIn(namespace)), RouteType, "80")
	if !ok {
		t.Fatal("there are no routes")
	}
	texts := map[*byte]string{}
	for piece := range subject.Encode().Tail.All() {
		texts[&piece[0]] = string(piece)
	}
	return texts
}

func lacking(before, after map[*byte]string) []*byte {
	return slices.DeleteFunc(slices.Collect(maps.Keys(after)), func(p *byte) bool { _, ok := before[p]; return ok })
}

// kubernetesServices are n services with requests at port 80, in some namespaces.
func kubernetesServices(n, namespaces int) (events []model.Event) {
	for i := range n {
		events = append(events, kubernetesService(i, namespaces))
	}
	return events
}

func kubernetesService(i, namespaces int) model.Event {
	namespace := fmt.Sprintf("ns-%d", i%namespaces)
	host := fmt.Sprintf("service-%d.%s.svc.cluster.local", i, namespace)
	return model.Upsert{Record: model.Record{
		Ref: model.Ref{Kind: model.KindService, Key: model.Key{Source: "s", Namespace: namespace, Name: host}},
		Spec: model.Service{
			Hosts: model.ListOf(host), Resolution: model.ResolutionStatic, Addresses: model.ListOf(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)),
			Ports: model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}),
		},
	}}
}

// Names are short in the domain that is configured, whatever clients say of theirs.
func TestNamesAreShortInTheConfiguredDomain(t *testing.T) {
	t.Parallel()
	for domain, want := range map[string]bool{"cluster.local": false, "corp.example": true} {
		s := NewTranslator()
		s.ClusterDomain = domain
		builder := catalog.NewBuilder(nil)
		service := largeService()
		service.Spec = model.Service{
			Hosts: model.ListOf("web.n.svc.corp.example"), Resolution: model.ResolutionStatic, Ports: model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}),
		}
		builder.Apply(1, []model.Event{model.Upsert{Record: service}})
		w := s.Begin(nil)(builder.Snapshot(), catalog.Change{}, true, "istio-system").World
		subject, ok := w.Find(w.View(RouteType, sidecarIn("n")), RouteType, "80")
		if !ok {
			t.Fatal("there are no routes")
		}
		domains := message(t, subject.Encode().Joined().Body).(*routev3.RouteConfiguration).GetVirtualHosts()[0].GetDomains()
		if got := slices.Contains(domains, "web.n"); got != want {
			t.Errorf("in %s a service has %v", domain, domains)
		}
	}
}
