package feature_test

import (
	"fmt"
	"slices"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// variant makes clients that take resources in one of two ways.
type variant func(xdsclient.TB, grpc.ClientConnInterface, xdsclient.Config) *xdsclient.Client

var variants = map[string]variant{
	"state of the world": xdsclient.NewSotW,
	"delta":              xdsclient.NewDelta,
}

// channel connects to an Isthmus without any name resolution.
func channel(t *testing.T, i *isthmus) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(i.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	i.clients = append(i.clients, func() { _ = conn.Close() })
	return conn
}

// openStream opens a stream as Envoy does and asks for every cluster.
func openStream(t *testing.T, i *isthmus, id string) *xdsclient.Client {
	t.Helper()
	c := xdsclient.NewSotW(t, channel(t, i), xdsclient.Config{Node: xdsclient.Node(id, "shop", "envoy")})
	c.Subscribe(xdsclient.CDS)
	return c
}

func cluster(host string) string { return "outbound|80||" + host }

func TestEnvoyIsServedBesideGRPC(t *testing.T) {
	t.Parallel()
	for name, connect := range variants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, b := newRegistry(t, "files"), startBackends(t, "one", "two")
			files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])},
				service{Host: ratings, Resolution: "DNS", Endpoints: []string{"{address: a.example}", "{address: b.example}"}})
			files.Write("hidden.yaml", service{Host: "hidden.example", Namespace: "elsewhere", ExportTo: "[.]"})
			isthmus := start(t, files)
			client := dial(t, isthmus, reviews+":80", "shop")
			envoy := connect(t, channel(t, isthmus), xdsclient.Config{
				Node: xdsclient.Node("envoy", "shop", "envoy"), Follow: xdsclient.FollowClusters,
			})
			envoy.Subscribe(xdsclient.CDS)
			envoy.AwaitHeld(xdsclient.CDS, cluster(reviews), cluster(ratings))
			awaitPorts(envoy, reviews, b[0])
			client.AwaitAnswers("one")

			files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b...)}, service{Host: "new.example"})
			envoy.AwaitHeld(xdsclient.CDS, cluster(reviews), cluster("new.example"))
			awaitPorts(envoy, reviews, b...)
			awaitPorts(envoy, "new.example")
			client.AwaitAnswers("one", "two")

			// While it is away a service comes and another one goes.
			envoy.Disconnect()
			files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[1])}, service{Host: "newer.example"})
			client.AwaitAnswers("two")
			envoy.Reconnect(true)
			envoy.AwaitHeld(xdsclient.CDS, cluster(reviews), cluster("newer.example"))
			awaitPorts(envoy, reviews, b[1])
		})
	}
}

// TestEnvoyReturnsWhileARegistryIsAway restarts, without a folder, while a registry is out
// of reach that need not be waited for. Once the wait for it is over, an Envoy that takes
// increments keeps what it has of that registry. To one that takes full sets nothing could
// be sent without taking that away: it is sent what is known, so that it learns the rest.
func TestEnvoyReturnsWhileARegistryIsAway(t *testing.T) {
	t.Parallel()
	for name, connect := range variants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			there, away, one := newRegistry(t, "there"), newRegistry(t, "away"), startBackend(t, "one")
			away.optional = true
			there.Write("shop.yaml", service{Host: ratings})
			away.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(one)})
			before := start(t, there, away)
			envoy := connect(t, channel(t, before), xdsclient.Config{
				Node: xdsclient.Node("envoy", "shop", "envoy"), Follow: xdsclient.FollowClusters,
			})
			envoy.Subscribe(xdsclient.CDS)
			envoy.AwaitHeld(xdsclient.CDS, cluster(reviews), cluster(ratings))
			awaitPorts(envoy, reviews, one)

			before.Stop()
			away.Move("", "../unmounted")
			after := startOn(t, before.XDS, there, away)
			client := dial(t, after, ratings+":80", "shop")
			await(t, "an answer", func() error { return after.acked(client, xdsclient.LDS, 1) }) // the wait is over
			envoy.Reconnect(true)
			there.Write("new.yaml", service{Host: "new.example"})
			envoy.Await("the new service", func(s *xdsclient.State) bool {
				names := s.Names(xdsclient.CDS)
				return slices.Contains(names, cluster(ratings)) && slices.Contains(names, cluster("new.example"))
			})
			after.Settle()
			envoy.Read(func(s *xdsclient.State) {
				_, keeps := s.Get(xdsclient.CDS, cluster(reviews))
				if keeps != envoy.IsDelta() {
					t.Errorf("the client is left with %v", s.Names(xdsclient.CDS))
				}
			})

			away.Move("../unmounted", "")
			away.Write("shop.yaml", service{Host: "another.example"})
			envoy.Await("what became of it", func(s *xdsclient.State) bool {
				names := s.Names(xdsclient.CDS)
				return slices.Contains(names, cluster("another.example")) && !slices.Contains(names, cluster(reviews))
			})
		})
	}
}

// awaitPorts waits until a load assignment leads to exactly these backends.
func awaitPorts(c *xdsclient.Client, host string, backends ...*backend) {
	want := map[uint32]bool{}
	for _, b := range backends {
		want[uint32(b.Addr.Port)] = true
	}
	c.Await("the endpoints of "+host, func(s *xdsclient.State) bool {
		resource, held := s.Get(xdsclient.EDS, cluster(host))
		if !held {
			return false
		}
		got := map[uint32]bool{}
		for _, locality := range resource.Content.(*endpointv3.ClusterLoadAssignment).GetEndpoints() {
			for _, e := range locality.GetLbEndpoints() {
				got[e.GetEndpoint().GetAddress().GetSocketAddress().GetPortValue()] = true
			}
		}
		return fmt.Sprint(got) == fmt.Sprint(want)
	})
}

// labels are a workload's labels as its node says them.
func labels(pairs ...string) *structpb.Value {
	fields := map[string]*structpb.Value{}
	for pair := range slices.Chunk(pairs, 2) {
		fields[pair[0]] = structpb.NewStringValue(pair[1])
	}
	return structpb.NewStructValue(&structpb.Struct{Fields: fields})
}
