package envoy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Whatever services there are, an Envoy takes everything that it is given: nothing is
// there twice that may be there once, and whatever is named exists or is answered.
func TestAnEnvoyTakesAllThatItIsGiven(t *testing.T) {
	settings, outliers := *conforming, policy.OutlierDetection{}
	outliers.SetDefaults()
	settings.Defaults = policy.Policy{OutlierDetection: &outliers}
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.SampledFrom([]func(*rapid.T) model.Event{drawEvent, drawCalled}).Draw(t, "generator")
		builder := catalog.NewBuilderIn(ruled)
		builder.Apply(1, rapid.SliceOfN(rapid.Custom(draw), 1, 12).Draw(t, "events"))
		w := settings.Begin(nil)(builder.Snapshot(), catalog.Change{}, true, "istio-system").World
		c := drawProvenClient(t)
		c.Kind = reach.KindEnvoy
		c.Proxy.Role = rapid.SampledFrom([]string{"sidecar", "sidecar", "router"}).Draw(t, "role of the Envoy")
		c.Proxy.Unprivileged = rapid.Bool().Draw(t, "unprivileged")
		if c.Proxy.Interception != "NONE" || c.Proxy.Role != "sidecar" {
			c.Proxy.Binds = nil // as the server reads them
		}
		c.Proxy.Binds = slices.DeleteFunc(slices.Clone(c.Proxy.Binds), func(b world.Bind) bool { return c.Proxy.Unprivileged && b.At.Port() < 1024 })
		if err := givenTo(t, w, c).check(); err != nil {
			t.Fatalf("%+v: %v", c.Proxy, err)
		}
	})
}

// possessions are all that a client is given by wildcard, and what it can ask for.
type possessions struct {
	t         failing
	world     world.World
	client    world.Client
	listeners []*listenerv3.Listener
	clusters  map[string]*clusterv3.Cluster
}

func givenTo(t failing, w world.World, c world.Client) *possessions {
	p := &possessions{t: t, world: w, client: c, clusters: map[string]*clusterv3.Cluster{}}
	for name := range w.Names(w.View(ListenerType, c), ListenerType) {
		m, _ := p.ask(ListenerType, name).(*listenerv3.Listener)
		p.listeners = append(p.listeners, m)
	}
	for name := range w.Names(w.View(ClusterType, c), ClusterType) {
		p.clusters[name], _ = p.ask(ClusterType, name).(*clusterv3.Cluster)
	}
	return p
}

// ask is what a client is answered; nil if there is nothing of the name.
func (p *possessions) ask(r world.Row, name string) proto.Message {
	subject, found := p.world.Find(p.world.View(r, p.client), r, name)
	if !found {
		return nil
	}
	return message(p.t, subject.Encode().Joined().Body)
}

func (p *possessions) check() error {
	sockets := map[string]string{}
	for _, m := range p.listeners {
		at := m.GetAddress().GetSocketAddress()
		socket := fmt.Sprint(at.GetProtocol(), at.GetAddress(), at.GetPortValue())
		if other, twice := sockets[socket]; twice {
			return fmt.Errorf("%s and %s have one address", other, m.GetName())
		}
		sockets[socket] = m.GetName()
		if err := p.checkListener(m); err != nil {
			return fmt.Errorf("listener %s: %w", m.GetName(), err)
		}
	}
	for name, m := range p.clusters {
		if err := validate(m); err != nil {
			return fmt.Errorf("cluster %s: %w", name, err)
		}
		if m.GetType() == clusterv3.Cluster_EDS && p.ask(EndpointType, name) == nil {
			return fmt.Errorf("cluster %s has no assignment", name)
		}
	}
	return nil
}

func (p *possessions) checkListener(m *listenerv3.Listener) error {
	if err := m.ValidateAll(); err != nil {
		return err
	}
	if port := m.GetAddress().GetSocketAddress().GetPortValue(); m.GetBindToPort() == nil && p.client.Proxy.Unprivileged && port < 1024 {
		return fmt.Errorf("it binds port %d without privileges", port)
	}
	if m.GetAddress().GetSocketAddress().GetProtocol() == corev3.SocketAddress_UDP {
		return nil // it has no chains
	}
	if len(m.GetFilterChains()) == 0 && m.GetDefaultFilterChain() == nil {
		return fmt.Errorf("no chain in %v", m)
	}
	matches := map[string]bool{}
	for _, chain := range m.GetFilterChains() {
		if len(chain.GetFilters()) == 0 {
			return fmt.Errorf("nothing in the chain %v", chain)
		}
		for _, match := range eachMatch(chain.GetFilterChainMatch()) {
			if matches[match] {
				return fmt.Errorf("two chains match %s", match)
			}
			matches[match] = true
		}
	}
	for _, name := range reachedThrough(m, wire.ClusterURL) {
		if p.clusters[name] == nil && !isOwnCluster(name) {
			return fmt.Errorf("it leads to a cluster %s that there is not", name)
		}
	}
	for _, name := range reachedThrough(m, wire.RouteURL) {
		routes, _ := p.ask(RouteType, name).(*routev3.RouteConfiguration)
		if routes == nil {
			return fmt.Errorf("it leads to routes %s that there are not", name)
		}
		if err := p.checkRoutes(routes); err != nil {
			return fmt.Errorf("routes %s: %w", name, err)
		}
	}
	return nil
}

// isOwnCluster is of those that the bootstrap of an Envoy may have itself.
func isOwnCluster(name string) bool { return name == names.BlackHole || name == names.Passthrough }

func (p *possessions) checkRoutes(m *routev3.RouteConfiguration) error {
	if err := m.ValidateAll(); err != nil {
		return err
	}
	domains := map[string]bool{}
	for _, host := range m.GetVirtualHosts() {
		for _, domain := range host.GetDomains() {
			key := strings.ToLower(domain)
			if domains[key] {
				return fmt.Errorf("domain %s is there twice", key)
			}
			domains[key] = true
		}
	}
	for _, name := range clustersIn(m) {
		if p.clusters[name] == nil && !isOwnCluster(name) {
			return fmt.Errorf("there is no cluster %s", name)
		}
	}
	return nil
}

// eachMatch writes what a chain matches as Envoy compares it: each combination of what it
// lists. Prefixes are those of their blocks, whatever the bits behind them.
func eachMatch(m *listenerv3.FilterChainMatch) []string {
	var prefixes []string
	for _, r := range m.GetPrefixRanges() {
		block := netip.PrefixFrom(netip.MustParseAddr(r.GetAddressPrefix()), int(r.GetPrefixLen().GetValue()))
		prefixes = append(prefixes, block.Masked().String())
	}
	list := []string{fmt.Sprint("port ", m.GetDestinationPort().GetValue(), " transport ", m.GetTransportProtocol())}
	for _, of := range [][]string{prefixes, m.GetServerNames(), m.GetApplicationProtocols()} {
		if len(of) == 0 {
			of = []string{"any"}
		}
		var next []string
		for _, some := range list {
			for _, one := range of {
				next = append(next, some+" "+one)
			}
		}
		list = next
	}
	return list
}
