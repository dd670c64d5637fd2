package envoy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// inCluster is a service as a cluster has it. A younger cluster has younger services.
func inCluster(cluster, name string, port model.Port, address string) model.Event {
	u := edgeService(name+".shop.svc.cluster.local", time.Duration(100-len(cluster))*time.Minute, model.ResolutionStatic, port).(model.Upsert)
	spec := u.Record.Spec.(model.Service)
	spec.Cluster, spec.Addresses = cluster, model.ListOf(address)
	u.Record.Source, u.Record.Spec = cluster, spec
	return u
}

// crossedClusters give the same addresses to different services: "east" is the older one.
func crossedClusters() *catalog.Builder {
	tcp, unnamed := model.Port{Number: 9000, Name: "main", Protocol: "TCP"}, model.Port{Number: 81, Name: "any"}
	cache, http, tls := model.Port{Number: 80, Name: "tcp", Protocol: "TCP"}, model.Port{Number: 80, Name: "http", Protocol: "HTTP"}, model.Port{Number: 443, Name: "tls", Protocol: "TLS"}
	b := catalog.NewBuilder([]string{"east", "westward"})
	b.Apply(1, []model.Event{
		inCluster("east", "db", tcp, "10.0.7.1"), inCluster("east", "mail", tcp, "10.0.7.2"),
		inCluster("westward", "db", tcp, "10.0.7.2"), inCluster("westward", "mail", tcp, "10.0.7.1"),
		inCluster("east", "eastern", tcp, "10.0.7.3"), inCluster("westward", "western", tcp, "10.0.7.3"),
		inCluster("east", "e-any", unnamed, "10.0.7.4"), inCluster("westward", "w-any", unnamed, "10.0.7.4"),
		inCluster("east", "alone", tcp, "10.0.7.5"),
		inCluster("east", "redis", cache, "10.0.7.6"), inCluster("westward", "web", http, "10.0.7.6"),
		inCluster("east", "e-tls", tls, "10.0.7.7"), inCluster("westward", "w-tls", tls, "10.0.7.7"),
		inCluster("east", "e-either", unnamed, "10.0.7.8"), inCluster("westward", "w-tcp", model.Port{Number: 81, Name: "tcp", Protocol: "TCP"}, "10.0.7.8"),
	})
	return b
}

func sidecarOf(cluster string) world.Client {
	c := sidecarIn("shop")
	c.Cluster = cluster
	return c
}

// A sidecar reaches at an address the service that has it in its cluster. Where none does,
// it reaches that of another cluster. Requests have no listener of an address.
func TestAddressesAreThoseOfTheClientsCluster(t *testing.T) {
	t.Parallel()
	u := answeringSettings().Begin(nil)(crossedClusters().Snapshot(), catalog.Change{}, true, "istio-system")
	east := map[string]string{
		"10.0.7.1_9000": "db", "10.0.7.2_9000": "mail", "10.0.7.3_9000": "eastern", "10.0.7.4_81": "e-any", "10.0.7.5_9000": "alone",
		"10.0.7.6_80": "redis", "10.0.7.7_443": "e-tls", "10.0.7.8_81": "e-either",
	}
	none := maps.Clone(east)
	none["10.0.7.7_443"] = "e-tls w-tls " // by the host in the handshake, since neither is the client's
	for cluster, want := range map[string]map[string]string{
		"east": east, "": none, "north": none,
		"westward": {
			"10.0.7.1_9000": "mail", "10.0.7.2_9000": "db", "10.0.7.3_9000": "western", "10.0.7.4_81": "w-any", "10.0.7.5_9000": "alone",
			"10.0.7.7_443": "w-tls", "10.0.7.8_81": "w-tcp",
		},
	} {
		client := sidecarOf(cluster)
		v, got := u.World.View(ListenerType, client), map[string]string{}
		for name := range u.World.Names(v, ListenerType) {
			listener, found := u.World.Find(v, ListenerType, name)
			if !found {
				t.Fatalf("%q: there is no listener %s", cluster, name)
			}
			if !strings.HasPrefix(name, "10.") {
				continue
			}
			var led []string
			for to := range listener.(world.Referrer).Refers(wire.ClusterURL) {
				host, _, _ := names.ParseCluster(to)
				service, _, _ := strings.Cut(host, ".")
				led = append(led, service)
			}
			got[name] = strings.Join(led, " ")
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%q: -want +got:\n%s", cluster, diff)
		}
	}
}

// Requests that name an address, and answers to lookups, are of the client's cluster.
func TestRoutesAndAnswersAreThoseOfTheClientsCluster(t *testing.T) {
	t.Parallel()
	u := answeringSettings().Begin(nil)(crossedClusters().Snapshot(), catalog.Change{}, true, "istio-system")
	for cluster, want := range map[string]struct {
		atAny   string // whose requests those for 10.0.7.4 are
		answers map[string][]string
	}{
		"east":     {"e-any", map[string][]string{"db": {"10.0.7.1"}, "mail": {"10.0.7.2"}, "eastern": {"10.0.7.3"}, "western": nil, "alone": {"10.0.7.5"}}},
		"westward": {"w-any", map[string][]string{"db": {"10.0.7.2"}, "mail": {"10.0.7.1"}, "eastern": nil, "western": {"10.0.7.3"}, "alone": {"10.0.7.5"}}},
	} {
		client := sidecarOf(cluster)
		subject, ok := u.World.Find(u.World.View(RouteType, client), RouteType, "81")
		if !ok {
			t.Fatal("there are no routes")
		}
		routes, _ := routesIn(t, subject.Encode())
		for _, host := range routes.GetVirtualHosts() {
			if is := slices.Contains(host.GetDomains(), "10.0.7.4"); is != strings.HasPrefix(host.GetName(), want.atAny+".") {
				t.Errorf("%q: %s has the domains %v", cluster, host.GetName(), host.GetDomains())
			}
		}
		answers, _ := answersTo(t, u.World, client)
		for name, addresses := range want.answers {
			if got := answers[name]; !slices.Equal(got, addresses) {
				t.Errorf("%q: %s is at %v, not %v", cluster, name, got, addresses)
			}
		}
	}
}

// Nobody is said to lack an address that another service has in another cluster.
func TestSameAddressInTwoClustersIsNoConflict(t *testing.T) {
	t.Parallel()
	b := crossedClusters()
	if said := conflictsSaid(b.Snapshot(), NewTranslator()); len(said) > 0 {
		t.Errorf("%v", said)
	}
	b.Apply(2, []model.Event{inCluster("westward", "zz", model.Port{Number: 9000, Name: "main", Protocol: "TCP"}, "10.0.7.1")})
	said := conflictsSaid(b.Snapshot(), NewTranslator())
	if len(said) != 1 || !strings.HasPrefix(said[0], "zz.shop.svc.cluster.local: ports[9000].addresses: connections to port 9000 of 10.0.7.1 go to mail.shop.svc.cluster.local") {
		t.Errorf("%v", said)
	}
}

// Clients of all clusters share views until a second cluster has addresses. Then there is
// one for each of these clusters, and one for whoever is of none.
func TestViewsOfClustersAreAsManyAsMatter(t *testing.T) {
	t.Parallel()
	tcp := model.Port{Number: 9000, Name: "main", Protocol: "TCP"}
	b := catalog.NewBuilder([]string{"east", "westward"})
	b.Apply(1, []model.Event{inCluster("east", "db", tcp, "10.0.7.1")})
	views := func(r world.Row) int {
		w, seen := NewWorld(b.Snapshot(), true, "istio-system"), map[world.View]bool{}
		for i := range 9 {
			for _, cluster := range []string{"east", "westward", "", fmt.Sprintf("c-%d", i)} {
				seen[w.View(r, sidecarOf(cluster))] = true
			}
		}
		return len(seen)
	}
	for r := range resourceTypes() {
		if got := views(world.Row(r)); got != 1 {
			t.Errorf("%s: %d views where one cluster has addresses", resourceTypes()[r].Name, got)
		}
	}
	change := b.Apply(2, []model.Event{inCluster("westward", "mail", tcp, "10.0.7.1")})
	for r, want := range map[world.Row]int{ListenerType: 3, RouteType: 3, ClusterType: 1, EndpointType: 1} {
		if got := views(r); got != want {
			t.Errorf("%s: %d views, not %d", resourceTypes()[r].Name, got, want)
		}
	}
	if got := Step(b.Snapshot(), change, true, "istio-system").Reviewed; !slices.Contains(got, "*") {
		t.Errorf("the clients of %v are looked at anew, and not all", got)
	}
}

// A listener comes, goes and leads elsewhere with services of the client's cluster, and
// every change says so.
func TestListenersOfOtherClustersFollowWhoTakesTheirAddress(t *testing.T) {
	t.Parallel()
	http := model.Port{Number: 80, Name: "main", Protocol: "HTTP"}
	tcp, datagrams := http, http
	tcp.Protocol, datagrams.Protocol = "TCP", "UDP"
	own := func(port model.Port) model.Event { return inCluster("westward", "web", port, "10.0.7.1") }
	hidden := own(http).(model.Upsert)
	spec, _ := hidden.Record.Spec.(model.Service)
	spec.ExportTo = model.ListOf("~")
	hidden.Record.Spec = spec
	b := catalog.NewBuilder([]string{"east", "westward"})
	b.Apply(1, []model.Event{inCluster("east", "redis", tcp, "10.0.7.1"), inCluster("westward", "other", tcp, "10.0.7.2")})
	led := func() map[string]string {
		return leading(t, NewWorld(b.Snapshot(), true, "istio-system"), sidecarOf("westward"))
	}
	const redis, web = "outbound|80||redis.shop.svc.cluster.local", "outbound|80||web.shop.svc.cluster.local"
	before := led()
	for i, step := range []struct {
		event model.Event
		want  string
	}{
		{own(http), ""},
		{own(tcp), web},
		{own(datagrams), ""},
		{hidden, redis},
		{own(http), ""},
		{inCluster("westward", "web", http, "10.0.7.3"), redis},
		{own(tcp), web},
		{model.Delete{Record: hidden.Record}, redis},
	} {
		change := b.Apply(uint64(i+2), []model.Event{step.event})
		after := led()
		if got := after["10.0.7.1_80"]; got != step.want {
			t.Errorf("step %d: 10.0.7.1 leads to %q, not to %q", i, got, step.want)
		}
		mustName(t, Changes(b.Snapshot(), change), before, after)
		before = after
	}
}

// When the last service of a port goes, the listeners of the port go, and nothing panics.
func TestListenersGoWithTheLastServiceOfAPort(t *testing.T) {
	t.Parallel()
	db := inCluster("east", "db", model.Port{Number: 7001, Name: "main", Protocol: "TCP"}, "10.0.7.1")
	b := catalog.NewBuilder([]string{"east"})
	b.Apply(1, []model.Event{db})
	change := b.Apply(2, []model.Event{model.Delete{Record: db.(model.Upsert).Record}})
	w := NewWorld(b.Snapshot(), true, "istio-system")
	for _, c := range Changes(b.Snapshot(), change) {
		for _, client := range []world.Client{sidecarOf(""), sidecarOf("east")} {
			if _, found := w.Find(w.View(c.Row, client), c.Row, c.Name); found && c.Row == ListenerType {
				t.Errorf("there is a listener %s", c.Name)
			}
		}
	}
	if _, found := w.Find(w.View(ListenerType, sidecarOf("")), ListenerType, "10.0.7.1_7001"); found {
		t.Error("there is a listener of the address")
	}
}

// After any history the listener of an address is that of services which have it in the
// client's cluster, if the client sees some, and one that is alone there has all calls. There
// is none where requests are the owner's.
func TestAddressesAreOfThoseWhoHaveThemInTheClientsCluster(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		builder := catalog.NewBuilderIn(ruled)
		for revision := range uint64(rapid.IntRange(1, 4).Draw(t, "steps")) {
			builder.Apply(revision+1, rapid.SliceOfN(rapid.Custom(drawCalled), 1, 8).Draw(t, "events"))
			w := NewWorld(builder.Snapshot(), true, "root")
			for _, c := range sidecarsOf("n", "m", "other") {
				for index := range builder.Snapshot().Ports() {
					for _, address := range []string{"10.0.0.1", "10.0.0.2"} {
						checkAddress(t, w, c, index, address)
					}
				}
			}
		}
	})
}

func checkAddress(t *rapid.T, w *World, c world.Client, index *catalog.PortServices, address string) {
	v := w.View(ListenerType, c).(View)
	var owners, others, called []catalog.ServiceDefinition
	for s := range index.Visible(v.viewer()) {
		switch has := slices.Contains(slices.Collect(s.OwnAddressesIn(v.proxy.Cluster)), address); {
		case has && s.ForeignIn(v.proxy.Cluster):
			others = append(others, s)
		case has:
			owners = append(owners, s)
		}
	}
	if len(owners) == 0 {
		owners = others
	}
	first := true // who owns the address, and if requests do there is no listener of it
	for _, s := range slices.SortedFunc(slices.Values(owners), func(a, b catalog.ServiceDefinition) int {
		return catalog.At(v.proxy.Cluster, address).Owner(v.Namespace, a, b)
	}) {
		port, _ := s.Port(index.Number)
		kind := reach.TrafficOf(port)
		if !reach.HasCluster(s, index.Number) || kind == reach.NotTCP {
			continue
		}
		if kind == reach.HTTP && first {
			break
		}
		if first = false; kind != reach.HTTP {
			called = append(called, s)
		}
	}
	calls := newCaller(t, w, c, "nowhere")
	if listens := calls.listener(names.Socket(address, index.Number)) != nil; listens != (len(called) > 0) {
		t.Fatalf("%s has a listener for %q of %s: %t, and there are %d services", names.Socket(address, index.Number), c.Cluster, c.Namespace, listens, len(called))
	}
	for s := range index.All() {
		for _, says := range []string{"GET", "hello", "anything"} {
			to := calls.reaches(call{address, index.Number, says, s.Key.Host})
			is := func(s catalog.ServiceDefinition) bool { return names.Cluster(s.Key.Host, index.Number) == to }
			switch {
			case slices.ContainsFunc(called, is), len(called) == 0:
			case len(called) > 1 && to == names.Passthrough:
			case says == "GET" && to == "": // by a host that is not that of the service
			default:
				t.Fatalf("%s for %s at %s reaches %q from %q of %s, and not %v", says, s.Key.Host, address, to, c.Cluster, c.Namespace, called)
			}
		}
	}
}

// halfHeadless is a service of two clusters, which has an address in the second one.
func halfHeadless() *catalog.Builder {
	tcp := model.Port{Number: 9000, Name: "main", Protocol: "TCP"}
	first := inCluster("east", "db", tcp, "").(model.Upsert)
	spec, _ := first.Record.Spec.(model.Service)
	spec.Addresses, spec.Traffic.Headless = model.List[string]{}, true
	first.Record.Spec = spec
	pod := model.Record{Ref: first.Record.Ref, Owner: first.Record.Ref, Spec: model.Endpoint{Address: "10.1.0.1"}}
	pod.Kind, pod.Name = model.KindEndpoint, pod.Name+"/1"
	b := catalog.NewBuilder([]string{"east", "westward"})
	b.Apply(1, []model.Event{first, model.Upsert{Record: pod}, inCluster("east", "other", tcp, "10.0.7.1")})
	return b
}

// A service that is headless in one cluster is reached at its address in another, and its
// endpoints are chosen by whoever connects only where it has none.
func TestServiceIsHeadlessInOneClusterAlone(t *testing.T) {
	t.Parallel()
	b, step := halfHeadless(), answeringSettings().Begin(nil)
	step(b.Snapshot(), catalog.Change{}, true, "istio-system")
	second := inCluster("westward", "db", model.Port{Number: 9000, Name: "main", Protocol: "TCP"}, "10.0.7.9")
	change := b.Apply(2, []model.Event{second})
	u := step(b.Snapshot(), change, true, "istio-system")
	if !slices.Contains(u.Reviewed, "*") {
		t.Errorf("the clients of %v are looked at anew, and not all", u.Reviewed)
	}
	const db, other = "outbound|9000||db.shop.svc.cluster.local", "outbound|9000||other.shop.svc.cluster.local"
	w := NewWorld(b.Snapshot(), true, "istio-system")
	for cluster, want := range map[string]struct {
		at   string
		by   clusterv3.Cluster_DiscoveryType
		said []string
	}{
		"":         {"10.1.0.1_9000", clusterv3.Cluster_ORIGINAL_DST, nil},
		"east":     {"10.1.0.1_9000", clusterv3.Cluster_ORIGINAL_DST, nil},
		"north":    {"10.1.0.1_9000", clusterv3.Cluster_ORIGINAL_DST, nil},
		"westward": {"10.0.7.9_9000", clusterv3.Cluster_EDS, []string{"10.0.7.9"}},
	} {
		client, m := sidecarOf(cluster), &clusterv3.Cluster{}
		mustLead(t, w, client, map[string]string{want.at: db, "10.0.7.1_9000": other})
		if !readInto(t, w, ClusterType, client, db, m) || m.GetType() != want.by {
			t.Errorf("%q: the cluster is %v", cluster, m)
		}
		if answers, _ := answersTo(t, u.World, client); !slices.Equal(answers["db.shop.svc.cluster.local"], want.said) {
			t.Errorf("%q: a lookup is answered %v", cluster, answers["db.shop.svc.cluster.local"])
		}
	}
	if said := conflictsSaid(b.Snapshot(), NewTranslator()); len(said) > 0 {
		t.Errorf("%v", said)
	}
	back := b.Apply(3, []model.Event{model.Delete{Record: second.(model.Upsert).Record}})
	if got := Step(b.Snapshot(), back, true, "istio-system").Reviewed; !slices.Contains(got, "*") {
		t.Errorf("the clients of %v are looked at anew when it is headless again, and not all", got)
	}
}
