package hostile

import (
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// good is the client that must not notice an attack: it has everything, follows
// every change, and breaks off at the first message that breaks a rule.
type good struct {
	*xdsclient.Client
}

// befriend connects a good client and returns once it has everything.
func befriend(t *testing.T, name string, r *room) *good {
	t.Helper()
	g := &good{xdsclient.NewDelta(t, r.dial(t), xdsclient.Config{
		Node: xdsclient.Node(name, "shop", "envoy"), Follow: xdsclient.FollowClusters,
	})}
	g.Subscribe(xdsclient.CDS, "*")
	g.awaitAll(r.registry.says())
	return g
}

// awaitAll waits until the client holds the services of a registry, each with
// all its endpoints.
func (g *good) awaitAll(want map[string]uint32) {
	g.AwaitNone(func(s *xdsclient.State) string {
		for name, weight := range want {
			if got, n := held(s, name); got != weight || n != endpoints {
				return fmt.Sprintf("%s with a weight of %d (not %d) and %d endpoints (not %d)", name, weight, got, endpoints, n)
			}
		}
		return ""
	})
}

// follow waits for a change, and returns how long it took until the client had
// ACKed it.
func (g *good) follow(cluster string, weight uint32, from time.Time) time.Duration {
	g.Await(fmt.Sprintf("%s with a weight of %d", cluster, weight), func(s *xdsclient.State) bool {
		got, _ := held(s, cluster)
		return got == weight
	})
	return time.Since(from)
}

// mustHaveLostNothing fails if the client ever got the removal of a cluster, or of its
// load assignment.
func (g *good) mustHaveLostNothing(t *testing.T, clusters iter.Seq[string]) {
	t.Helper()
	g.Read(func(s *xdsclient.State) {
		for name := range clusters {
			for _, typeURL := range []string{xdsclient.CDS, xdsclient.EDS} {
				if n := s.Removals(typeURL, name); n > 0 {
					t.Errorf("the good client got the removal of %s %d times", name, n)
				}
			}
		}
	})
}

// clusters are all that the client has.
func (g *good) clusters() (names iter.Seq[string]) {
	g.Read(func(s *xdsclient.State) { names = slices.Values(s.Names(xdsclient.CDS)) })
	return names
}

// held is the first endpoint's weight in a cluster's load assignment, and how
// many endpoints it has. Without the cluster there are none.
func held(s *xdsclient.State, cluster string) (weight uint32, n int) {
	assignment, _ := s.Get(xdsclient.EDS, cluster)
	content, ok := assignment.Content.(*endpointv3.ClusterLoadAssignment)
	if _, there := s.Get(xdsclient.CDS, cluster); !there || !ok {
		return 0, 0
	}
	for _, group := range content.GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			n++
			weight = max(weight, e.GetLoadBalancingWeight().GetValue())
		}
	}
	return weight, n
}

// dial connects the good client, which waits for a program that restarts.
func (r *room) dial(t *testing.T) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(r.xdsTarget(), r.options()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// options are those of every connection: a stream waits until it is there, and
// it is tried again soon.
func (r *room) options() []grpc.DialOption {
	const soon = 10 * time.Millisecond
	identity := insecure.NewCredentials()
	if r.tls != nil {
		identity = credentials.NewTLS(r.tls)
	}
	return []grpc.DialOption{
		grpc.WithTransportCredentials(identity),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: soon, Multiplier: 1, MaxDelay: soon}, MinConnectTimeout: until.Patience}),
	}
}
