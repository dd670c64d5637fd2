package mcp_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	mcp "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
)

// config has one source and an output that somebody could read from.
func config(t *testing.T, source string) string {
	t.Helper()
	return fmt.Sprintf("sources:\n- name: galley\n  mcp: %s\noutputs:\n  xds: {listen: %q}", source, freeAddress(t))
}

// A peer that is dialled, with the collections that are asked for if nothing is said.
func TestIsthmusDialsASource(t *testing.T) {
	t.Parallel()
	d := listen(t)
	i := start(t, config(t, fmt.Sprintf("{address: %q}", d.address)))
	s := d.accept(5)
	for _, kind := range []string{"serviceentries", "synthetic/serviceentries", "sidecars", "workloadentries", "workloadgroups"} {
		if s.first["istio/networking/v1alpha3/"+kind] == nil {
			t.Errorf("%s is not asked for", kind)
		}
	}
	// Collections come in any order, and are ACKed when all have been stored.
	for n, c := range []string{"istio/networking/v1alpha3/sidecars", synthetic, "istio/networking/v1alpha3/workloadgroups", entries} {
		a := &mcp.Resources{Collection: c, Nonce: fmt.Sprint("first ", n)}
		if c == entries {
			a.Resources = []*mcp.Resource{entry(t, "shop/cart", "1", "10.0.0.1", "10.0.0.2")}
		}
		if err := s.wire.Send(a); err != nil {
			t.Fatal(err)
		}
	}
	vm := &networking.WorkloadEntry{Address: "10.0.9.1", Labels: map[string]string{"app": "vm"}}
	if err := s.wire.Send(&mcp.Resources{
		Collection: "istio/networking/v1alpha3/workloadentries", Nonce: "last", Resources: []*mcp.Resource{resource(t, "shop/vm", "1", vm)},
	}); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if q := s.receive(); q.GetResponseNonce() == "" || q.GetErrorDetail() != nil {
			t.Errorf("answered by %v", q)
		}
	}
	i.source("live")
	i.services(map[string][2]int{"cart.example": {2, 2}})
	s.full(entries, entry(t, "shop/cart", "2", "10.0.0.1"), entry(t, "shop/users", "1", "10.0.1.1"))
	i.services(map[string][2]int{"cart.example": {1, 1}, "users.example": {1, 1}})
	s.send(&mcp.Resources{Collection: "istio/networking/v1alpha3/gateways"}, codes.Unimplemented)
	s.full(entries, entry(t, "shop/users", "1", "10.0.1.1"))
	i.services(map[string][2]int{"users.example": {1, 1}})
}

// A peer that dials, as Galley does with --sinkAddress.
func TestASourceDialsIsthmus(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	i := start(t, config(t, fmt.Sprintf("{listen: %q, collections: [%s, %s]}", address, entries, synthetic)))
	s := dial(t, address, 2)
	first := &mcp.Resources{Collection: entries, Nonce: "x"}
	if err := s.wire.Send(first); err != nil {
		t.Fatal(err)
	}
	e := entry(t, "shop/cart", "1", "10.0.0.1")
	e.Metadata.Annotations = map[string]string{"networking.alpha.istio.io/notReadyEndpoints": "10.0.0.2:80,10.0.0.3:80"}
	if err := s.wire.Send(&mcp.Resources{Collection: synthetic, Nonce: "y", Resources: []*mcp.Resource{e}}); err != nil {
		t.Fatal(err)
	}
	s.receive()
	s.receive()
	i.services(map[string][2]int{"cart.example": {1, 3}})
	s.full(synthetic, entry(t, "shop/cart", "2", "10.0.0.1", "10.0.0.2"))
	i.services(map[string][2]int{"cart.example": {2, 2}})

	s.end()
	i.source("stale")
	i.services(map[string][2]int{"cart.example": {2, 2}})
	s = dial(t, address, 2)
	if err := s.wire.Send(first); err != nil {
		t.Fatal(err)
	}
	if err := s.wire.Send(&mcp.Resources{Collection: synthetic, Nonce: "z", Resources: []*mcp.Resource{entry(t, "shop/cart", "3", "10.0.0.9")}}); err != nil {
		t.Fatal(err)
	}
	i.services(map[string][2]int{"cart.example": {1, 1}})
}

// Increments, a peer that is killed, and one that resumes; then Isthmus is restarted.
func TestIncrementsAreResumed(t *testing.T) {
	t.Parallel()
	d := listen(t)
	i := start(t, config(t, fmt.Sprintf("{address: %q, incremental: true, collections: [%s]}", d.address, entries)))
	s := d.accept(1)
	if q := s.first[entries]; !q.GetIncremental() || len(q.GetInitialResourceVersions()) > 0 {
		t.Errorf("the first request is %v", q)
	}
	s.full(entries, entry(t, "shop/cart", "1", "10.0.0.1"), entry(t, "shop/users", "1", "10.0.1.1"))
	s.send(&mcp.Resources{Collection: entries, Incremental: true, Resources: []*mcp.Resource{entry(t, "shop/pay", "5", "10.0.2.1")}}, codes.OK)
	s.send(&mcp.Resources{Collection: entries, Incremental: true, RemovedResources: []string{"shop/users", "shop/none"}}, codes.OK)
	held := map[string][2]int{"cart.example": {1, 1}, "pay.example": {1, 1}}
	i.services(held)

	d.server.Stop()
	if status := i.source("stale"); !strings.Contains(status.Reason, d.address) {
		t.Errorf("it is stale: %s", status.Reason)
	}
	i.services(held)
	d.start()
	s = d.accept(1)
	if got := s.first[entries].GetInitialResourceVersions(); !maps.Equal(got, map[string]string{"shop/cart": "1", "shop/pay": "5"}) {
		t.Errorf("resumed from %v", got)
	}
	s.send(&mcp.Resources{Collection: entries, Incremental: true, RemovedResources: []string{"shop/pay"}}, codes.OK)
	i.source("live")
	i.services(map[string][2]int{"cart.example": {1, 1}})

	i.stop()
	s.end()
	i.serve()
	s = d.accept(1)
	i.services(map[string][2]int{"cart.example": {1, 1}}) // before anything is sent
	s.full(entries, entry(t, "shop/cart", "1", "10.0.0.1"), entry(t, "shop/new", "1", "10.0.3.1"))
	i.services(map[string][2]int{"cart.example": {1, 1}, "new.example": {1, 1}})
}

// What cannot be taken is reported, with the reason, and the rest is used.
func TestABadResourceIsReported(t *testing.T) {
	t.Parallel()
	d := listen(t)
	i := start(t, config(t, fmt.Sprintf("{address: %q, collections: [%s]}", d.address, entries)))
	s := d.accept(1)
	s.full(entries, entry(t, "shop/cart", "1", "10.0.0.1"), entry(t, "shop/users", "1", "10.0.1.1"))
	s.full(entries, entry(t, "shop/cart", "2", "10.0.0.1", "10.0.0.2"), entry(t, "shop/users", "2", "10.0.1.2", "nowhere at all"))
	i.services(map[string][2]int{"cart.example": {2, 2}, "users.example": {1, 1}})
	status := i.source("live")
	if len(status.Refused) != 1 || status.Refused[0].Object != "ServiceEntry shop/users" || !strings.Contains(status.Refused[0].Reason, "is not an IP address") {
		t.Errorf("rejected are %v", status.Refused)
	}
	broken := entry(t, "shop/cart", "3", "10.0.0.9")
	broken.Body.Value = []byte("\xff\xff")
	s.send(&mcp.Resources{Collection: entries, Resources: []*mcp.Resource{broken}}, codes.InvalidArgument)
	i.services(map[string][2]int{"cart.example": {2, 2}, "users.example": {1, 1}})
	if n := i.source("live").Types; len(n) != 1 || n[0].Type != entries || n[0].Resources != 2 || n[0].Received != 3 || n[0].Accepted != 2 ||
		n[0].Refused != 1 || !strings.Contains(n[0].Reason, "decoded") {
		t.Errorf("it is accounted for as %v", n)
	}
	// A state that drops everything is ACKed, and held.
	s.full(entries)
	i.source("held")
	i.services(map[string][2]int{"cart.example": {2, 2}, "users.example": {1, 1}})
}

// Five thousand services in one answer of a few MiB, of which one has more endpoints
// than an API server takes.
func TestLargeStates(t *testing.T) {
	t.Parallel()
	d := listen(t)
	i := start(t, config(t, fmt.Sprintf("{address: %q, collections: [%s]}", d.address, entries)))
	s := d.accept(1)
	var state []*mcp.Resource
	want := map[string][2]int{}
	for n := range 5000 {
		addresses := []string{fmt.Sprintf("10.1.%d.%d", n/250, n%250)}
		if n == 0 {
			for e := range 5000 {
				addresses = append(addresses, fmt.Sprintf("10.2.%d.%d", e/250, e%250))
			}
		}
		state = append(state, entry(t, fmt.Sprintf("shop/s%d", n), "1", addresses...))
		want[fmt.Sprintf("s%d.example", n)] = [2]int{len(addresses), len(addresses)}
	}
	s.full(entries, state...)
	i.services(want)
}
