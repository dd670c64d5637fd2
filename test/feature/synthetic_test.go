package feature_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	mcpapi "istio.io/api/mcp/v1alpha1"

	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// clusterOf is that of a service of a galley.
func clusterOf(name string) string { return cluster(name + ".example") }

// envoyOf asks for all clusters, and for load assignments by their names, whatever
// clusters there are.
func envoyOf(t *testing.T, i *isthmus, names ...string) *xdsclient.Client {
	t.Helper()
	c := xdsclient.NewDelta(t, channel(t, i), xdsclient.Config{Node: xdsclient.Node("envoy", "shop", "envoy")})
	c.Subscribe(xdsclient.CDS)
	c.Subscribe(xdsclient.EDS, names...)
	return c
}

// pushes is how often a client was sent something of a cluster: that, its removal, its
// load assignment, and the removal of that.
type pushes struct{ cluster, gone, endpoints, cleared int }

func pushesOf(c *xdsclient.Client, name string) (p pushes) {
	c.Read(func(s *xdsclient.State) {
		p = pushes{
			s.Received(xdsclient.CDS, name), s.Removals(xdsclient.CDS, name), s.Received(xdsclient.EDS, name), s.Removals(xdsclient.EDS, name),
		}
	})
	return p
}

// expectPushes waits until just so much was sent of a cluster.
func expectPushes(c *xdsclient.Client, name string, want pushes) {
	c.Await(fmt.Sprintf("%+v of %s", want, name), func(s *xdsclient.State) bool {
		return s.Received(xdsclient.CDS, name) == want.cluster && s.Removals(xdsclient.CDS, name) == want.gone &&
			s.Received(xdsclient.EDS, name) == want.endpoints && s.Removals(xdsclient.EDS, name) == want.cleared
	})
}

// expectNew waits until a cluster has come that was asked for before it was there, and so
// may have been denied.
func expectNew(c *xdsclient.Client, name string) {
	c.Await("the new "+name, func(s *xdsclient.State) bool {
		return s.Received(xdsclient.CDS, name) == 1 && s.Received(xdsclient.EDS, name) == 1
	})
}

// once is all that is sent of a service that does not change.
var once = pushes{cluster: 1, endpoints: 1}

// Removals alone are a push: of the cluster and of its endpoints, though it was the
// last service of its namespace. Its neighbour is left alone, and it may come again.
func TestRemovedSyntheticServiceIsPushedAndItsEndpointsCleared(t *testing.T) {
	t.Parallel()
	g := newGalley(t)
	i := g.start(g.of("shop", "cart", 1, "10.0.0.1"), g.of("alone", "users", 1, "10.0.1.1"))
	envoy := envoyOf(t, i, clusterOf("cart"), clusterOf("users"))
	expectPushes(envoy, clusterOf("users"), once)
	expectPushes(envoy, clusterOf("cart"), once)

	g.change([]string{"alone/users-entry"})
	expectPushes(envoy, clusterOf("users"), pushes{cluster: 1, gone: 1, endpoints: 1, cleared: 1})
	envoy.AwaitHeld(xdsclient.CDS, clusterOf("cart"))
	envoy.AwaitHeld(xdsclient.EDS, clusterOf("cart"))
	g.change(nil, g.of("alone", "users", 2, "10.0.1.2"))
	expectPushes(envoy, clusterOf("users"), pushes{cluster: 2, gone: 1, endpoints: 2, cleared: 1})
	if got := pushesOf(envoy, clusterOf("cart")); got != once {
		t.Errorf("of the neighbour was pushed %+v", got)
	}
}

// A full state that lacks what the one before had is a push of the removals.
func TestServicesThatVanishBetweenFullStatesArePushedAsRemovals(t *testing.T) {
	t.Parallel()
	g := newGalley(t)
	cart, pay := g.of("shop", "cart", 1, "10.0.0.1"), g.of("shop", "pay", 1, "10.0.2.1")
	i := g.start(cart, g.of("shop", "users", 1, "10.0.1.1"), pay)
	envoy := envoyOf(t, i, clusterOf("cart"), clusterOf("users"), clusterOf("pay"))
	for _, name := range []string{"cart", "users", "pay"} {
		expectPushes(envoy, clusterOf(name), once)
	}
	g.full(cart, pay) // nothing in it is new
	expectPushes(envoy, clusterOf("users"), pushes{cluster: 1, gone: 1, endpoints: 1, cleared: 1})
	for _, name := range []string{"cart", "pay"} {
		if got := pushesOf(envoy, clusterOf(name)); got != once {
			t.Errorf("of %s, which has not changed, was pushed %+v", name, got)
		}
	}
}

// Clusters and load assignments are those of the hosts of an entry, not of its name.
func TestEndpointsOfSyntheticEntriesAreThoseOfTheirHosts(t *testing.T) {
	t.Parallel()
	g := newGalley(t)
	i := g.start(synthetic(t, "shop/cart", 1, []string{"cart.corp.example", "basket.corp.example"}, []string{"10.0.0.1"}))
	byHost, byName := []string{"outbound|80||basket.corp.example", "outbound|80||cart.corp.example"}, "outbound|80||cart.shop.svc.cluster.local"
	envoy := envoyOf(t, i, slices.Concat(byHost, []string{byName})...)
	envoy.AwaitHeld(xdsclient.CDS, byHost...)
	envoy.AwaitHeld(xdsclient.EDS, byHost...)
	g.change(nil, synthetic(t, "shop/cart", 2, []string{"cart.corp.example", "basket.corp.example"}, []string{"10.0.0.1", "10.0.0.2"}))
	for _, name := range byHost {
		expectPushes(envoy, name, pushes{cluster: 1, endpoints: 2})
	}
	if got := pushesOf(envoy, byName); got.cluster+got.endpoints > 0 {
		t.Errorf("of the name of the entry was pushed %+v", got)
	}
}

// A service that is seen for the first time is a push of that service, and another
// version of one that is as it was is none.
func TestPushesAreOfWhatChangedWhateverVersionsSay(t *testing.T) {
	t.Parallel()
	g := newGalley(t)
	i := g.start(g.of("shop", "cart", 1, "10.0.0.1"), g.of("shop", "users", 1, "10.0.1.1"))
	envoy := envoyOf(t, i, clusterOf("cart"), clusterOf("users"), clusterOf("pay"))
	expectPushes(envoy, clusterOf("cart"), once)
	expectPushes(envoy, clusterOf("users"), once)

	g.change(nil, g.of("shop", "cart", 2, "10.0.0.1"))
	g.change(nil, g.of("shop", "pay", 1, "10.0.2.1"))
	expectNew(envoy, clusterOf("pay"))
	g.change(nil, g.of("shop", "users", 2, "10.0.1.1", "10.0.1.2"))
	expectPushes(envoy, clusterOf("users"), pushes{cluster: 1, endpoints: 2})
	if got := pushesOf(envoy, clusterOf("cart")); got != once {
		t.Errorf("of a service that only has another version was pushed %+v", got)
	}
	envoy.Read(func(s *xdsclient.State) {
		if got := s.Received(xdsclient.CDS, clusterOf("pay")); got != 1 {
			t.Errorf("the new service came %d times", got)
		}
	})
}

// Twenty thousand services that are seen for the first time are pushed together, and
// another one alone, once.
func TestManyNewServicesArePushedTogether(t *testing.T) {
	t.Parallel()
	const services, responses = 20_000, 200
	g := newGalley(t)
	first := g.of("shop", "first", 1, "10.0.0.1")
	i := g.start(first)
	state := map[string]*mcpapi.Resource{clusterOf("first"): first}
	for n := range services {
		name := fmt.Sprint("s", n)
		state[clusterOf(name)] = g.of("shop", name, 1, fmt.Sprintf("10.1.%d.%d", n/250, n%250))
	}
	all := slices.Collect(maps.Keys(state))
	envoy := envoyOf(t, i, append(all, clusterOf("last"))...)
	envoy.AwaitHeld(xdsclient.EDS, clusterOf("first"))
	g.full(slices.Collect(maps.Values(state))...)
	envoy.AwaitHeld(xdsclient.CDS, all...)
	envoy.AwaitHeld(xdsclient.EDS, all...)
	envoy.Read(func(s *xdsclient.State) {
		if got := s.Responses(xdsclient.CDS) + s.Responses(xdsclient.EDS); got > responses {
			t.Errorf("%d services came in %d responses, want at most %d", services, got, responses)
		}
	})
	g.change(nil, g.of("shop", "last", 1, "10.0.0.2"))
	expectNew(envoy, clusterOf("last"))
	envoy.Read(func(s *xdsclient.State) {
		for _, typeURL := range []string{xdsclient.CDS, xdsclient.EDS} {
			if names, gone := s.Newest(typeURL); !slices.Equal(names, []string{clusterOf("last")}) || len(gone) > 0 {
				t.Errorf("with the new service came %d resources of %s, and %d removals", len(names), typeURL, len(gone))
			}
		}
		for _, name := range all {
			if s.Received(xdsclient.CDS, name) != 1 {
				t.Errorf("%s came %d times", name, s.Received(xdsclient.CDS, name))
			}
		}
	})
}
