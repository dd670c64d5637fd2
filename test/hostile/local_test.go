package hostile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// locals are addresses and names that mean another machine to each client.
var locals = []string{
	"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "169.254.169.254", "::ffff:169.254.169.254", "fe80::1",
	"0.0.0.0", "::", "::ffff:0.0.0.0", "unix:///run/admin.sock",
}

// localNames are looked up.
var localNames = []string{"localhost", "LocalHost.", "admin.localhost", "127.0.0.1"}

// withEdge has a teller, and a port of edges that exposes all hosts.
func withEdge(t *testing.T) setup {
	t.Helper()
	s := withTeller(t)
	s.files = fmt.Sprintf(`, envoy: {edge: {ports: [{number: %d, hosts: ["*"]}]}}`, port)
	return s
}

// lookedUp is a service with endpoints that are names.
func lookedUp(round int, names ...string) *mcpapi.Resource {
	e := &networking.ServiceEntry{
		Hosts: []string{"named.shop.example.com"}, Resolution: networking.ServiceEntry_DNS,
		Ports: []*networking.ServicePort{{Number: port, Name: "http", Protocol: "HTTP"}},
	}
	for _, name := range names {
		e.Endpoints = append(e.Endpoints, &networking.WorkloadEntry{Address: name})
	}
	body, err := anypb.New(e)
	if err != nil {
		panic(err)
	}
	return &mcpapi.Resource{Metadata: &mcpapi.Metadata{Name: "shop/named", Version: fmt.Sprint(round)}, Body: body}
}

// localEndpoints lists endpoints at local addresses among others, which are replaced again
// and again. The good client and an edge follow the others, and never have a local one.
func localEndpoints(t *testing.T, r *room) string {
	edge := &good{xdsclient.NewDelta(t, r.dial(t), xdsclient.Config{
		Node: xdsclient.Node("router~10.0.0.9~edge.shop~shop.svc.cluster.local", "shop", "envoy"), Follow: xdsclient.FollowClusters,
	})}
	edge.Subscribe(xdsclient.CDS, "*")
	edge.AwaitNone(lacksTold)
	r.good.AwaitNone(lacksTold)
	n := size(50, 5)
	r.beside(t, func(ctx context.Context) error {
		for round := 1; round <= n; round++ {
			want := addresses(0, round)
			entries := everyEntry()
			entries[0] = entry(0, slices.Concat(want[:each/2], locals, want[each/2:])...)
			entries = append(entries, lookedUp(round, append([]string{fmt.Sprintf("r%d.example.net", round)}, localNames...)...))
			if err := r.teller.list(ctx, entries...); err != nil {
				return err
			}
			slices.Sort(want)
			for _, client := range []*good{r.good, edge} {
				if err := client.awaitReached(ctx, 0, want); err != nil {
					return err
				}
				if err := client.reachesNoLocalName(); err != nil {
					return err
				}
			}
		}
		return nil
	})
	for _, client := range []*good{r.good, edge} {
		client.Await("the service of names", func(s *xdsclient.State) bool {
			c, _ := s.Get(xdsclient.CDS, namedCluster)
			return strings.Contains(fmt.Sprint(c.Content), ".example.net")
		})
		if err := client.reachesNoLocalName(); err != nil {
			t.Error(err)
		}
	}
	if rejected := r.server.rejectedLocals(t); rejected != len(locals)+len(localNames) {
		t.Errorf("%d endpoints are rejected, want %d", rejected, len(locals)+len(localNames))
	}
	edge.Close()
	r.listEverything(t)
	return fmt.Sprintf("%d local endpoints among others that were replaced %d times, beside an edge", len(locals)+len(localNames), n)
}

var namedCluster = fmt.Sprintf("outbound|%d||named.shop.example.com", port)

// reachesNoLocalName says which local name the client has.
func (g *good) reachesNoLocalName() (err error) {
	g.Read(func(s *xdsclient.State) {
		c, _ := s.Get(xdsclient.CDS, namedCluster)
		text := strings.ToLower(fmt.Sprint(c.Content))
		for _, name := range localNames {
			if strings.Contains(text, strings.ToLower(name)) {
				err = fmt.Errorf("a client has the endpoint %s: %s", name, text)
			}
		}
	})
	return err
}
