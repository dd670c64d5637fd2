package envoy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/push"
)

// An Envoy that takes hosts of large ports one by one ends with those that are in the
// route configuration of the port, whatever happens to it and to them.
func TestSingleHostsFoldToTheRouteConfiguration(t *testing.T) {
	checkFolds(t, newHostHistory)
}

// hostHistory is services that claim each other's domains, and Envoys that take them.
type hostHistory struct {
	folding

	t        *rapid.T
	settings *settings
	builder  *catalog.Builder
	revision uint64
	envoys   []*hostEnvoy
}

func newHostHistory(t *rapid.T) *hostHistory {
	h := &hostHistory{t: t, settings: NewSettings().prepare(), builder: catalog.NewBuilder(mergeOrder)}
	h.settings.large = rapid.IntRange(1, 8).Draw(t, "large")
	h.serve()
	return h
}

func (h *hostHistory) run() {
	for _, namespace := range []string{"n", "m"} {
		h.envoys = append(h.envoys, &hostEnvoy{
			h: h, folder: folder{folding: &h.folding, name: namespace}, versions: map[push.Row]map[string]push.Version{}, routes: map[string]*hostTable{}, asked: map[string]bool{},
			asks: map[string]bool{"80": true, "80.hosts": true, "81": true, "81.hosts": rapid.Bool().Draw(h.t, "asks")},
		})
	}
	h.change()
	for range rapid.IntRange(1, 8).Draw(h.t, "rounds") {
		for range rapid.IntRange(1, 5).Draw(h.t, "acts") {
			h.act()
		}
		h.rest()
	}
}

func (h *hostHistory) act() {
	e := rapid.SampledFrom(h.envoys).Draw(h.t, "who")
	switch rapid.IntRange(0, 7).Draw(h.t, "act") {
	case 0:
		e.leave()
	case 7:
		e.turnTo(rapid.SampledFrom([]string{"80.hosts", "81.hosts"}).Draw(h.t, "routes"))
	case 1:
		e.connect()
	case 2, 3:
		e.turn(rapid.IntRange(0, 2).Draw(h.t, "NACKs") == 0)
	default:
		h.change()
	}
}

func (h *hostHistory) change() {
	events := rapid.SliceOfN(rapid.Custom(drawClaimant), 1, 5).Draw(h.t, "events")
	if rapid.IntRange(0, 4).Draw(h.t, "scoped") == 0 {
		events = append(events, model.Upsert{Record: model.Record{
			Ref:  model.Ref{Kind: model.KindScope, Key: model.Key{Source: "first", Namespace: "m", Name: "s"}},
			Spec: model.Scope{Hosts: model.ListOf(rapid.SampledFrom([]string{"*/*", "./*", "n/*"}).Draw(h.t, "pattern"))},
		}})
	}
	h.apply(events...)
}

func (h *hostHistory) apply(events ...model.Event) {
	h.revision++
	h.log("%v", events)
	change := h.builder.Apply(h.revision, events)
	h.producer.Publish(h.settings.step(h.builder.Snapshot(), change, true, "root", nil))
	synctest.Wait()
}

// rest has everybody take everything, and compares.
func (h *hostHistory) rest() {
	for range 2 { // the second is an ACK after which all that was NACKed is tried again
		for _, e := range h.envoys {
			e.connect()
			for e.turn(false) {
				continue
			}
		}
		h.apply(progress(h.revision)...)
	}
	for busy := true; busy; {
		busy = false
		for _, e := range h.envoys {
			busy = e.turn(false) || busy
		}
	}
	snapshot := h.builder.Snapshot()
	w := h.settings.world(snapshot, true, "root", nil)
	for _, e := range h.envoys {
		e.compare(w, snapshot)
	}
}

// progress changes a service of each port in each namespace, so that everybody ACKs
// something.
func progress(revision uint64) (events []model.Event) {
	for i, namespace := range []string{"n", "m"} {
		for _, port := range []uint32{80, 81} {
			host := fmt.Sprintf("%s-%d.com", namespace, port)
			events = append(events, model.Upsert{Record: model.Record{
				Ref: model.Ref{Kind: model.KindService, Key: model.Key{Source: "first", Namespace: namespace, Name: host}},
				Spec: model.Service{
					Hosts: model.ListOf(host), Resolution: model.ResolutionStatic, Addresses: model.ListOf(fmt.Sprintf("10.%d.%d.%d", 70+i, port, revision%250)),
					Ports: model.ListOf(model.Port{Number: port, Name: "it", Protocol: "HTTP"}),
				},
			}})
		}
	}
	return events
}

// hostEnvoy is an Envoy as far as it takes routes.
type hostEnvoy struct {
	folder

	h        *hostHistory
	versions map[push.Row]map[string]push.Version // as it says when it connects
	routes   map[string]*hostTable
	asks     map[string]bool // for the route configurations that listeners lead to
	asked    map[string]bool // for these at some time
}

// hostTable is a route configuration.
type hostTable struct {
	config *routev3.RouteConfiguration
	single map[string]*routev3.VirtualHost
}

func (e *hostEnvoy) names() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(e.asks)) {
		if e.asks[name] {
			e.asked[name] = true
			names = append(names, name)
		}
	}
	return names
}

// turnTo begins to use a route configuration, or ceases to. Envoy forgets one with its
// hosts, and goes on to say which versions of these it had.
func (e *hostEnvoy) turnTo(name string) {
	e.h.log("%s asks for %s: %t", e.name, name, !e.asks[name])
	e.asks[name] = !e.asks[name]
	request := push.Request{Type: e.typ(RouteType)}
	if e.asks[name] {
		e.asked[name] = true
		request.Subscribe = []string{name}
	} else {
		request.Unsubscribe = []string{name}
		delete(e.routes, name)
		delete(e.versions[RouteType], name)
	}
	if e.sub != nil {
		e.request(request)
	}
}

func (e *hostEnvoy) client() push.Client {
	c := sidecarIn(e.name)
	c.Increments, c.Release = true, [2]uint32{hostsFromMajor, hostsFromMinor}
	return c
}

func (e *hostEnvoy) connect() {
	if e.sub != nil {
		return
	}
	e.folder.connect(e.client())
	order := []push.Row{ClusterType, ListenerType, RouteType, VirtualHostType}
	if len(e.versions[VirtualHostType]) > 0 && rapid.IntRange(0, 3).Draw(e.h.t, "another order") == 0 {
		order[2], order[3] = order[3], order[2]
	}
	for _, r := range order {
		request := push.Request{Type: e.typ(r), Mode: push.Delta, Held: maps.Clone(e.versions[r])}
		if r == RouteType {
			request.Subscribe = e.names()
		} else {
			request.Wildcard = push.WildcardOn
		}
		if r == VirtualHostType && e.routes["80.hosts"] == nil && e.routes["81.hosts"] == nil {
			for e.turn(false) { // it asks for hosts once a route configuration has them
				continue
			}
		}
		e.request(request)
	}
}

// turn takes what there is, and reports whether there was any.
func (e *hostEnvoy) turn(nacks bool) (busy bool) {
	return e.take(func(r *push.Response) { e.receive(r, nacks) })
}

func (e *hostEnvoy) receive(r *push.Response, nacks bool) {
	m := e.read(r)
	row := push.Row(r.Type - e.typ(0))
	answer, ok := push.Answer{Kind: push.ACK, Serial: r.Serial}, true
	switch row {
	case RouteType:
		e.takeRoutes(m)
	case VirtualHostType:
		ok = !nacks && e.takeHosts(m)
	}
	e.h.log("%s takes of type %d, NACKed %t: %d resources, %v, gone %v", e.name, row, !ok, len(m.Resources), namesIn(m), m.RemovedResources)
	if !ok {
		answer.Kind = push.NACK
	} else {
		e.note(row, m)
	}
	e.request(push.Request{Type: r.Type, Answer: answer})
}

func namesIn(m *discoveryv3.DeltaDiscoveryResponse) (names []string) {
	for _, res := range m.Resources {
		names = append(names, res.Name)
	}
	return names
}

func (e *hostEnvoy) note(row push.Row, m *discoveryv3.DeltaDiscoveryResponse) {
	if e.versions[row] == nil {
		e.versions[row] = map[string]push.Version{}
	}
	for _, name := range m.RemovedResources {
		delete(e.versions[row], name)
	}
	for _, res := range m.Resources {
		e.versions[row][res.Name], _ = push.ParseVersion(res.Version)
	}
}

// takeRoutes takes a route configuration, without the hosts that came before. Envoy
// ignores a removal.
func (e *hostEnvoy) takeRoutes(m *discoveryv3.DeltaDiscoveryResponse) {
	for _, res := range m.Resources {
		if !e.asks[res.Name] {
			continue // it was on its way
		}
		config := &routev3.RouteConfiguration{}
		e.unpack(res.Resource, config)
		e.routes[res.Name] = &hostTable{config, map[string]*routev3.VirtualHost{}}
	}
}

// takeHosts takes hosts of the route configurations that there are. It takes nothing of
// a response after which a domain would be in two of them.
func (e *hostEnvoy) takeHosts(m *discoveryv3.DeltaDiscoveryResponse) (ok bool) {
	for _, res := range m.Resources {
		if of, _, _ := strings.Cut(res.Name, "/"); !e.asked[of] {
			e.h.broken("%s is sent %s, and never asked for %s", e.name, res.Name, of)
		}
	}
	next := map[*hostTable]map[string]*routev3.VirtualHost{}
	for name, table := range e.routes {
		hosts := maps.Clone(table.single)
		for _, gone := range m.RemovedResources {
			delete(hosts, gone)
		}
		for _, res := range m.Resources {
			of, _, _ := strings.Cut(res.Name, "/")
			if of != name || table.config.GetVhds() == nil {
				continue
			}
			host := &routev3.VirtualHost{}
			e.unpack(res.Resource, host)
			if host.Name != res.Name || strings.Count(res.Name, "/") != 1 {
				e.h.broken("%s is sent %s as %s, and Envoy could not remove that", e.name, host.Name, res.Name)
			}
			hosts[res.Name] = host
		}
		taken := map[string]bool{"*": true}
		for _, host := range hosts {
			for _, domain := range host.Domains {
				if taken[strings.ToLower(domain)] {
					return false
				}
				taken[strings.ToLower(domain)] = true
			}
		}
		next[table] = hosts
	}
	for table, hosts := range next {
		table.single = hosts
	}
	return true
}

// compare checks that the single hosts of each port are those of its route configuration,
// and that listeners lead to them where there are enough.
func (e *hostEnvoy) compare(w *World, s *catalog.Snapshot) {
	v := of(w.View(RouteType, e.client()))
	for _, number := range []uint32{80, 81} {
		e.compareListener(w, s, number)
		table := e.routes[hostRoutes(number)]
		switch {
		case !e.asks[hostRoutes(number)]:
			continue
		case table == nil:
			e.h.broken("%s was not sent %s", e.name, hostRoutes(number))
		case table.config.GetVhds() == nil:
			e.h.broken("%s has %s without VHDS, so it would remove no hosts", e.name, hostRoutes(number))
		}
		got := slices.Collect(maps.Values(table.single))
		want := plainRoutes(s, v, number)
		got, should := leadingTo(append(got, table.config.VirtualHosts...)), leadingTo(want.VirtualHosts)
		if !slices.EqualFunc(got, should, func(a, b *routev3.VirtualHost) bool { return proto.Equal(a, b) }) {
			e.h.broken("%s has at port %d\n%v\nand should have\n%v", e.name, number, got, should)
		}
	}
}

// leadingTo are virtual hosts without their names, in order.
func leadingTo(hosts []*routev3.VirtualHost) (list []*routev3.VirtualHost) {
	for _, host := range hosts {
		own, _ := proto.Clone(host).(*routev3.VirtualHost)
		own.Name = ""
		list = append(list, own)
	}
	slices.SortFunc(list, func(a, b *routev3.VirtualHost) int { return strings.Compare(a.Domains[0], b.Domains[0]) })
	return list
}

func (e *hostEnvoy) compareListener(w *World, s *catalog.Snapshot, number uint32) {
	subject, ok := w.Find(w.View(ListenerType, e.client()), ListenerType, socketName(anyIPv4, number))
	if !ok {
		return
	}
	l := &listenerv3.Listener{}
	a := &anypb.Any{}
	encoded := subject.Encode()
	if err := proto.Unmarshal(encoded.Body, a); err != nil {
		e.h.broken("%v", err)
	}
	e.unpack(a, l)
	is, _ := push.ParseVersion(encoded.Version.String())
	if got := e.versions[ListenerType][l.Name]; got != is {
		e.h.broken("%s does not have %s as it is", e.name, l.Name)
	}
	for _, chain := range l.FilterChains {
		m := &hcmv3.HttpConnectionManager{}
		if chain.Filters[0].Name != httpFilter {
			continue
		}
		e.unpack(chain.Filters[0].GetTypedConfig(), m)
		want := portRoutes(number)
		if s.Port(number).Len() >= e.h.settings.large {
			want = hostRoutes(number)
		}
		if got := m.GetRds().GetRouteConfigName(); got != want {
			e.h.broken("%s leads to %s, not to %s", l.Name, got, want)
		}
	}
}

// A listener opens with the first response of hosts, so all are in it, however many.
func TestFirstHostsAreAllHosts(t *testing.T) {
	t.Parallel()
	const services = 9000
	builder := catalog.NewBuilder([]string{"s"})
	builder.Apply(1, kubernetesServices(services, 10))
	engine := push.New(push.Config{Order: xds.Order(), Frame: xds.Frame})
	producer := engine.Produce(Types(nil))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { engine.Run(ctx) })
	defer running.Wait()
	defer cancel()
	producer.Publish(push.Update{World: (&Settings{ClusterDomain: "cluster.local", VHDS: VHDS{From: 500}}).prepare().world(builder.Snapshot(), true, "root", nil)})
	client := sidecarIn("ns-7")
	client.Increments, client.Release = true, [2]uint32{hostsFromMajor, hostsFromMinor}
	sub := engine.Connect(push.Info{ID: "it"}, client)
	defer sub.Close()
	for _, request := range []push.Request{{Type: producer.Type(RouteType), Subscribe: []string{"80.hosts"}}, {Type: producer.Type(VirtualHostType), Wildcard: push.WildcardOn}} {
		request.Mode = push.Delta
		if err := sub.Request(request); err != nil {
			t.Fatal(err)
		}
	}
	for {
		first := <-sub.Out()
		if first.Type != producer.Type(VirtualHostType) {
			continue
		}
		if len(first.Resources) != services {
			t.Errorf("the first response has %d hosts of %d", len(first.Resources), services)
		}
		return
	}
}

// Only an Envoy that takes single hosts is led to them: of a release that does, and over
// delta.
func TestWhoTakesSingleHosts(t *testing.T) {
	t.Parallel()
	builder := catalog.NewBuilder([]string{"s"})
	builder.Apply(1, kubernetesServices(500, 10))
	w := NewSettings().prepare().world(builder.Snapshot(), true, "root", nil)
	for _, c := range []struct {
		increments bool
		release    [2]uint32
		routes     string
	}{
		{true, [2]uint32{1, 40}, "80.hosts"},
		{true, [2]uint32{2, 0}, "80.hosts"},
		{true, [2]uint32{1, 39}, "80"},
		{true, [2]uint32{}, "80"}, // it does not say
		{false, [2]uint32{1, 40}, "80"},
	} {
		client := sidecarIn("ns-7")
		client.Increments, client.Release = c.increments, c.release
		listener, ok := w.Find(w.View(ListenerType, client), ListenerType, socketName(anyIPv4, 80))
		if !ok {
			t.Fatal("there is no listener")
		}
		if got := slices.Collect(listener.(push.Referrer).Refers(routeURL)); !slices.Equal(got, []string{c.routes}) { //nolint:forcetypeassert // it is one
			t.Errorf("%d.%d, increments %t: led to %v, want %s", c.release[0], c.release[1], c.increments, got, c.routes)
		}
		if _, ok := w.Find(w.View(RouteType, client), RouteType, "80.hosts"); ok != (c.routes == "80.hosts") {
			t.Errorf("%d.%d, increments %t: has 80.hosts: %t", c.release[0], c.release[1], c.increments, ok)
		}
	}
}
