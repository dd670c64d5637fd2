package envoy

import (
	"maps"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// hostEnvoy is an Envoy as far as it takes routes.
type hostEnvoy struct {
	folder

	h        *hostHistory
	versions map[world.Row]map[string]world.Version // as it says when it connects
	routes   map[string]*hostTable
	asks     map[string]bool // for the route configurations that listeners lead to
	asked    map[string]bool // for these at some time
	forgot   bool            // it has ceased to use a route configuration
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
// hosts, and goes on to say which versions of these it had. So it NACKs no hosts after that:
// on its next stream it would say that it has the hosts that it has forgotten and NACKed
// since, and no server could know better.
func (e *hostEnvoy) turnTo(name string) {
	e.h.log("%s asks for %s: %t", e.name, name, !e.asks[name])
	e.asks[name] = !e.asks[name]
	request := session.Request{Type: e.typ(RouteType)}
	if e.asks[name] {
		e.asked[name] = true
		request.Subscribe = []string{name}
	} else {
		request.Unsubscribe = []string{name}
		e.forgot = true
		delete(e.routes, name)
		delete(e.versions[RouteType], name)
	}
	if e.sub != nil {
		e.request(request)
	}
}

func (e *hostEnvoy) client() world.Client {
	c := sidecarIn(e.name)
	c.Cluster = map[string]string{"n": "west"}[e.name] // the other says none
	c.Increments, c.Release = true, [2]uint32{node.HostsFromMajor, node.HostsFromMinor}
	return c
}

func (e *hostEnvoy) connect() {
	if e.sub != nil {
		return
	}
	e.folder.connect(e.client())
	order := []world.Row{ClusterType, ListenerType, RouteType, VirtualHostType}
	if len(e.versions[VirtualHostType]) > 0 && rapid.IntRange(0, 3).Draw(e.h.t, "another order") == 0 {
		order[2], order[3] = order[3], order[2]
	}
	for _, r := range order {
		request := session.Request{Type: e.typ(r), Mode: world.Delta, Held: maps.Clone(e.versions[r])}
		if r == RouteType {
			request.Subscribe = e.names()
		} else {
			request.Wildcard = session.WildcardOn
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
	return e.take(func(r *session.Response) { e.receive(r, nacks) })
}

func (e *hostEnvoy) receive(r *session.Response, nacks bool) {
	m := e.read(r)
	row := world.Row(r.Type - e.typ(0))
	answer, ok := session.Answer{Kind: session.ACK, Serial: r.Serial}, true
	switch row {
	case RouteType:
		e.takeRoutes(m)
	case VirtualHostType:
		ok = (!nacks || e.forgot) && e.takeHosts(m)
	}
	e.h.log("%s takes of type %d, NACKed %t: %d resources, %v, gone %v", e.name, row, !ok, len(m.Resources), namesIn(m), m.RemovedResources)
	if !ok {
		answer.Kind = session.NACK
	} else {
		e.note(row, m)
	}
	e.request(session.Request{Type: r.Type, Answer: answer})
}

func namesIn(m *discoveryv3.DeltaDiscoveryResponse) (names []string) {
	for _, res := range m.Resources {
		names = append(names, res.Name)
	}
	return names
}

func (e *hostEnvoy) note(row world.Row, m *discoveryv3.DeltaDiscoveryResponse) {
	if e.versions[row] == nil {
		e.versions[row] = map[string]world.Version{}
	}
	for _, name := range m.RemovedResources {
		delete(e.versions[row], name)
	}
	for _, res := range m.Resources {
		if row == RouteType && !e.asks[res.Name] {
			continue // as in takeRoutes: Envoy keeps no version of what it does not ask for
		}
		e.versions[row][res.Name], _ = world.ParseVersion(res.Version)
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
		table := e.routes[names.HostRoutes(number)]
		switch {
		case !e.asks[names.HostRoutes(number)]:
			continue
		case table == nil:
			e.h.broken("%s was not sent %s", e.name, names.HostRoutes(number))
		case table.config.GetVhds() == nil:
			e.h.broken("%s has %s without VHDS, so it would remove no hosts", e.name, names.HostRoutes(number))
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
	subject, ok := w.Find(w.View(ListenerType, e.client()), ListenerType, names.Socket(names.AnyIPv4, number))
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
	is, _ := world.ParseVersion(encoded.Version.String())
	if got := e.versions[ListenerType][l.Name]; got != is {
		e.h.broken("%s does not have %s as it is", e.name, l.Name)
	}
	for _, chain := range l.FilterChains {
		m := &hcmv3.HttpConnectionManager{}
		if chain.Filters[0].Name != "envoy.filters.network.http_connection_manager" {
			continue
		}
		e.unpack(chain.Filters[0].GetTypedConfig(), m)
		want := names.PortRoutes(number)
		if s.Port(number).Len() >= e.h.settings.LargePort {
			want = names.HostRoutes(number)
		}
		if got := m.GetRds().GetRouteConfigName(); got != want {
			e.h.broken("%s leads to %s, not to %s", l.Name, got, want)
		}
	}
}
