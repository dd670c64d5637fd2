package hostile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/test/testkit/mcpsink"
)

const (
	mcpStream  = "/istio.mcp.v1alpha1.ResourceSource/EstablishResourceStream"
	collection = "istio/networking/v1alpha3/serviceentries"
)

// withMCP has MCP attacked: attacks go to that port, and a good sink of it must not
// notice, beside the good client.
func withMCP(*testing.T) setup { return setup{mcp: true} }

// allCollections are the requests of a sink of all that there is, as increments. The
// second is for whole states, the third for what nobody serves.
func allCollections(id string) [][]byte {
	node := &mcp.SinkNode{Id: id}
	return [][]byte{
		marshal(&mcp.RequestResources{SinkNode: node, Collection: collection, Incremental: true}),
		marshal(&mcp.RequestResources{Collection: mcp.Synthetic}),
		marshal(&mcp.RequestResources{Collection: "istio/config/v1alpha2/nobodys"}),
	}
}

// sinkNACK is the NACK of a response.
func sinkNACK(text []byte) []byte {
	var m mcp.Resources
	_ = proto.Unmarshal(text, &m) // what cannot be read is answered without a nonce
	return marshal(&mcp.RequestResources{
		Collection: m.GetCollection(), ResponseNonce: m.GetNonce(), Incremental: m.GetIncremental(),
		ErrorDetail: &status.Status{Code: 3, Message: "I take nothing"},
	})
}

// goodSink is a sink that keeps to the protocol and holds the program to it.
type goodSink struct{ *mcpsink.Follower }

func befriendSink(t *testing.T, r *room) *goodSink {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+r.server.mcp, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	s := &goodSink{&mcpsink.Follower{
		ID: "good", Collections: []string{collection}, Incremental: true,
		Decide: func(*mcp.Resources) (string, bool) { return "", true },
	}}
	if err := s.Connect(conn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); _ = conn.Close() })
	s.awaitAll(t, r.registry.says())
	return s
}

// awaitAll waits until the sink holds the services of a registry, on the stream that it
// has had from the beginning.
func (s *goodSink) awaitAll(t *testing.T, want map[string]uint32) {
	t.Helper()
	await(t, "the good sink to hold everything", func() error {
		got := map[string]uint32{}
		if err := s.Read(collection, func(c *mcpsink.Collection, _ int) {
			for _, content := range c.Contents {
				var e networking.ServiceEntry
				if err := proto.Unmarshal([]byte(content), &e); err == nil && len(e.GetEndpoints()) == endpoints {
					got[fmt.Sprintf("outbound|%d||%s", port, e.GetHosts()[0])] = heaviest(&e)
				}
			}
		}); err != nil {
			return err
		}
		for name, weight := range want {
			if got[name] != weight {
				return fmt.Errorf("%s has a weight of %d, not %d", name, got[name], weight)
			}
		}
		return nil
	})
}

func heaviest(e *networking.ServiceEntry) (weight uint32) {
	for _, endpoint := range e.GetEndpoints() {
		weight = max(weight, endpoint.GetWeight())
	}
	return weight
}

// excesses are what a sink may say too much of, over and over on one stream.
var excesses = []func(i int) []byte{
	func(i int) []byte { // nonces that were never sent
		return marshal(&mcp.RequestResources{Collection: collection, Incremental: true, ResponseNonce: fmt.Sprint(i)})
	},
	func(i int) []byte { // collections that nobody has
		return marshal(&mcp.RequestResources{Collection: fmt.Sprint("unknown/", i)})
	},
	func(i int) []byte { // the same collection, now so and now otherwise
		return marshal(&mcp.RequestResources{Collection: collection, Incremental: i%2 == 0})
	},
	func(i int) []byte { // long nonces, reasons and names
		return marshal(&mcp.RequestResources{
			SinkNode: &mcp.SinkNode{Id: strings.Repeat("i", 1<<10)}, Collection: collection,
			ResponseNonce: strings.Repeat("n", 20<<10), ErrorDetail: &status.Status{Code: 13, Message: strings.Repeat("e", 20<<10)},
		})
	},
	func(i int) []byte { // all that one may say it holds, of what nobody has
		held := map[string]string{}
		for n := range size(200_000, 5_000) {
			held[fmt.Sprintf("%d/%d", i, n)] = "0123456789abcdef0123456789abcdef"
		}
		return marshal(&mcp.RequestResources{Collection: collection, Incremental: true, InitialResourceVersions: held})
	},
}

// excessiveSinks say too much of all kinds, and read what comes.
func excessiveSinks(t *testing.T, r *room) string {
	var o outcomes
	var c *crowd
	r.beside(t, func(ctx context.Context) error {
		conns, err := r.attackers(stormers)
		if err != nil {
			return err
		}
		defer conns.close()
		end := time.Now().Add(size(8*time.Second, time.Second))
		c = newCrowd(ctx)
		c.send(2*stormers, func(ctx context.Context, i int) error {
			for timeLeft(ctx, end) {
				if err := o.note(conns.exceed(ctx, i, excesses[i%len(excesses)], end, c)); err != nil {
					return err
				}
			}
			return nil
		})
		return c.wait()
	})
	return fmt.Sprintf("%d requests of five kinds of excess, on %d streams, of which %d were rejected by name",
		c.count.Load(), o.served.Load()+o.rejected.Load(), o.rejected.Load())
}

// exceed opens a stream, says requests until it ends, and returns how that was.
func (c connections) exceed(ctx context.Context, attacker int, excess func(int) []byte, end time.Time, all *crowd) error {
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	s, err := c.open(ctx, attacker, mcpStream)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	var reading sync.WaitGroup
	defer reading.Wait()
	reading.Go(func() {
		for {
			if _, err := s.receive(); err != nil {
				ended <- err
				return
			}
		}
	})
	for i := 0; ; i++ {
		if err := s.SendMsg(excess(i)); err != nil {
			return <-ended
		}
		all.count.Add(1)
	}
}

// thousandsOfSinks hold streams of everything, answer nothing more, and stay.
func thousandsOfSinks(t *testing.T, r *room) string {
	n, churned := size(2000, 40), 0
	r.beside(t, func(ctx context.Context) error {
		conns, err := r.attackers(size(40, 4))
		if err != nil {
			return err
		}
		defer conns.close()
		reading, stop := context.WithCancel(ctx)
		c := newCrowd(reading)
		c.send(n, func(ctx context.Context, i int) error {
			s, err := conns.open(ctx, i, mcpStream)
			if err != nil {
				return unlessOver(ctx, err)
			}
			_ = s.SendMsg(allCollections(fmt.Sprint("sink-", i))[0])
			for err == nil {
				_, err = s.receive()
			}
			return unlessOver(ctx, err)
		})
		err = r.awaitClients(ctx, n+1)
		if err == nil {
			churned, err = r.churn(ctx, size(3*time.Second, time.Second))
		}
		stop()
		return errors.Join(err, unlessStopped(c.wait()))
	})
	return fmt.Sprintf("%d sinks of everything that never answer, %d changes", n, churned)
}
