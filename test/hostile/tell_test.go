package hostile

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

const (
	listed = 20 // services of a teller
	each   = 10 // endpoints of each
)

// teller is a registry that is read over MCP, and lists what an attack tells it to.
type teller struct {
	next chan state
	mu   sync.Mutex
	now  state
}

// state is everything that a registry lists; answered is closed once the program answered.
type state struct {
	entries  []*mcpapi.Resource
	answered chan struct{}
}

// withTeller adds a teller that lists all of its services.
func withTeller(t *testing.T) setup {
	t.Helper()
	l := &teller{next: make(chan state), now: state{everyEntry(), make(chan struct{})}}
	address := serveStreams(t, mcpStream, l.speak)
	return setup{teller: l, sources: fmt.Sprintf("- name: teller\n  required: true\n  mcp: {address: %q, collections: [%s]}", address, collection)}
}

// speak sends the newest state on a stream, and the next one once it was answered.
func (l *teller) speak(s grpc.ServerStream) error {
	for n := 1; ; n++ {
		l.mu.Lock()
		now := l.now
		l.mu.Unlock()
		if err := s.SendMsg(saysMCP(n, false, now.entries...)); err != nil {
			return err
		}
		for answer := new(mcp.RequestResources); answer.GetResponseNonce() != fmt.Sprint(n); {
			var text []byte
			if err := s.RecvMsg(&text); err != nil {
				return err
			}
			answer.Reset()
			if err := proto.Unmarshal(text, answer); err != nil {
				return err
			}
		}
		select {
		case <-now.answered: // on an earlier stream
		default:
			close(now.answered)
		}
		// Cases: the next state; the program does not follow any more.
		select {
		case next := <-l.next:
			l.mu.Lock()
			l.now = next
			l.mu.Unlock()
		case <-s.Context().Done():
			return nil
		}
	}
}

// list has the registry list something else, and returns once the program has answered.
func (l *teller) list(ctx context.Context, entries ...*mcpapi.Resource) error {
	s := state{entries, make(chan struct{})}
	select {
	case l.next <- s:
	case <-ctx.Done():
		return fmt.Errorf("the program does not take a state: %w", ctx.Err())
	}
	select {
	case <-s.answered:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the program does not answer a state: %w", ctx.Err())
	}
}

func tellerName(service int) string { return fmt.Sprintf("tell-%02d", service) }

func tellerCluster(service int) string {
	return fmt.Sprintf("outbound|%d||%s.shop.example.com", port, tellerName(service))
}

// addresses are those of a service's endpoints, in the n-th round of their lives.
func addresses(service, n int) (list []string) {
	for i := range each {
		list = append(list, fmt.Sprintf("10.%d.%d.%d", 100+n, service, i+1))
	}
	return list
}

// entry is a service with endpoints at some addresses. An empty one is of an endpoint that is
// wrong.
func entry(service int, addresses ...string) *mcpapi.Resource {
	e := &networking.ServiceEntry{
		Hosts: []string{tellerName(service) + ".shop.example.com"}, Resolution: networking.ServiceEntry_STATIC, Location: networking.ServiceEntry_MESH_INTERNAL,
		Ports: []*networking.ServicePort{{Number: port, Name: "http", Protocol: "HTTP"}},
	}
	for _, address := range addresses {
		if address == "" {
			e.Endpoints = append(e.Endpoints, &networking.WorkloadEntry{Address: "10.99.0.1", Ports: map[string]uint32{"http": 0}})
			continue
		}
		e.Endpoints = append(e.Endpoints, &networking.WorkloadEntry{Address: address})
	}
	body, err := anypb.New(e)
	if err != nil {
		panic(err)
	}
	return &mcpapi.Resource{Metadata: &mcpapi.Metadata{Name: "shop/" + tellerName(service), Version: fmt.Sprint(addresses)}, Body: body}
}

func everyEntry() (all []*mcpapi.Resource) {
	for i := range listed {
		all = append(all, entry(i, addresses(i, 0)...))
	}
	return all
}

// reached are the addresses that a client has of a service, sorted.
func reached(s *xdsclient.State, service int) (list []string) {
	assignment, _ := s.Get(xdsclient.EDS, tellerCluster(service))
	content, _ := assignment.Content.(*endpointv3.ClusterLoadAssignment)
	for _, group := range content.GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			list = append(list, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
		}
	}
	slices.Sort(list)
	return list
}

// lacksTold says which service a client does not reach at exactly its addresses; empty if there
// is none.
func lacksTold(s *xdsclient.State) string {
	for i := range listed {
		want := slices.Sorted(slices.Values(addresses(i, 0)))
		if got := reached(s, i); !slices.Equal(got, want) {
			return fmt.Sprintf("%s at %v, not at %v", tellerName(i), got, want)
		}
	}
	return ""
}

// dropInWaves has a registry lose its endpoints over many listings, and its services in the
// last of them. All are served in the end, those included that went before there were many.
func dropInWaves(t *testing.T, r *room) string {
	const waves = 10
	r.good.AwaitNone(lacksTold)
	r.beside(t, func(ctx context.Context) error {
		again := time.NewTicker(size(300*time.Millisecond, 20*time.Millisecond))
		defer again.Stop()
		for wave := range waves {
			var left []*mcpapi.Resource
			for i := range listed {
				if n := each - wave - 1; n > 0 || i == 0 {
					left = append(left, entry(i, addresses(i, 0)[:max(n, 1)]...))
				}
			}
			if err := r.teller.list(ctx, left...); err != nil {
				return err
			}
			<-again.C
		}
		return nil
	})
	r.good.AwaitNone(lacksTold)
	if held := r.server.metrics(t).Sum("isthmus_source_held"); held == 0 {
		t.Error("nothing is held, although the registry lists one endpoint")
	}
	r.listEverything(t)
	return fmt.Sprintf("a registry of %d endpoints shrank to 1 in %d listings", listed*each, waves)
}

// otherHalves has a registry list another half of its endpoints each time. The good client is
// sent nothing at all of them.
func otherHalves(t *testing.T, r *room) string {
	r.good.AwaitNone(lacksTold)
	sent := func() (n int) {
		r.good.Read(func(s *xdsclient.State) {
			for i := range listed {
				n += s.Received(xdsclient.EDS, tellerCluster(i))
			}
		})
		return n
	}
	before, random, listings := sent(), chance(0), 0
	r.beside(t, func(ctx context.Context) error {
		again := time.NewTicker(size(100*time.Millisecond, 10*time.Millisecond))
		defer again.Stop()
		for range size(40, 10) {
			var half []*mcpapi.Resource
			for i := range listed {
				all := addresses(i, 0)
				random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
				half = append(half, entry(i, all[:each/2]...))
			}
			if err := r.teller.list(ctx, half...); err != nil {
				return err
			}
			listings++
			<-again.C
		}
		return nil
	})
	r.listEverything(t)
	if n := sent() - before; n > 0 {
		t.Errorf("the good client was sent %d load assignments, although no endpoint may go", n)
	}
	return fmt.Sprintf("a registry of %d endpoints listed another half %d times", listed*each, listings)
}

// badEndpoint has one endpoint of a service be wrong while all others of it are replaced again
// and again. The good client follows each time, and never reaches the wrong one.
func badEndpoint(t *testing.T, r *room) string {
	r.good.AwaitNone(lacksTold)
	n := size(50, 5)
	r.beside(t, func(ctx context.Context) error {
		for round := 1; round <= n; round++ {
			want := addresses(0, round)
			entries := everyEntry()
			entries[0] = entry(0, slices.Concat(want[:each/2], []string{""}, want[each/2:])...)
			if err := r.teller.list(ctx, entries...); err != nil {
				return err
			}
			slices.Sort(want)
			if err := r.good.awaitReached(ctx, 0, want); err != nil {
				return err
			}
		}
		return nil
	})
	r.listEverything(t)
	return fmt.Sprintf("the endpoints of a service replaced %d times beside one that is wrong", n)
}

// awaitReached waits until a client reaches a service at exactly some addresses.
func (g *good) awaitReached(ctx context.Context, service int, want []string) error {
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		var got []string
		g.Read(func(s *xdsclient.State) { got = reached(s, service) })
		if slices.Equal(got, want) {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("a client reaches %s at %v, not at %v", tellerName(service), got, want)
		}
	}
}

// listEverything has the registry list what it did at first, and waits until that is served
// and nothing is held.
func (r *room) listEverything(t *testing.T) {
	t.Helper()
	if err := r.teller.list(t.Context(), everyEntry()...); err != nil {
		t.Fatal(err)
	}
	r.good.AwaitNone(lacksTold)
	await(t, "nothing to be held", func() error {
		if held := r.server.metrics(t).Sum("isthmus_source_held"); held > 0 {
			return fmt.Errorf("%v records are", held)
		}
		return nil
	})
}
