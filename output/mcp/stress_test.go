package mcp_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	wire "github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/output/mcp"
	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/test/testkit/mcpsink"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// The recipe of the reference implementation's stress test: clients, states that are
// published, one NACK in so many responses, and one reconnection in so many states
// of a client.
const (
	stressIterations = 100
	stressNACK       = 10
	stressReconnect  = 100
	perConnection    = 50
)

// stressClients is the number of clients. The recipe has 1,000: go test -run TestStress -args -clients 1000.
var stressClients = flag.Int("clients", 100, "clients of TestStress")

// TestStress is run by the recipe of the reference implementation: sinks of full
// states and of increments take state after state, NACK some without a reason, come and
// go. In the end each of them holds what there is, by its content and by the version of
// the whole.
// The next state is published when half of the sinks have answered, so that many
// states meet sinks that are busy with the one before.
func TestStress(t *testing.T) {
	clients := *stressClients
	r := newRig(t, setup{limits: mcp.Limits{Limits: streams.Limits{StreamsPerClient: 2 * clients, StreamsPerConnection: 2 * perConnection}}})
	r.put(entries, "a/first", "0")
	var conns []*grpc.ClientConn
	for range max(1, clients/perConnection) {
		conns = append(conns, r.dial())
	}
	sinks := make([]*mcpsink.Follower, clients)
	var quiet atomic.Bool // nobody NACKs any more
	var answers atomic.Int64
	for i := range sinks {
		dice := rand.New(rand.NewPCG(1, uint64(i)))
		sinks[i] = &mcpsink.Follower{ID: fmt.Sprint(i), Collections: []string{entries}, Incremental: i%2 == 0}
		sinks[i].Decide = func(*wire.Resources) (string, bool) {
			answers.Add(1)
			if !quiet.Load() && dice.IntN(stressNACK) == 0 {
				return "one in ten", i%2 == 0 && i%4 != 0
			}
			return "", i%2 == 0
		}
	}
	begun := time.Now()
	connectAll(t, sinks, conns)
	dice := rand.New(rand.NewPCG(2, 0))
	for n := range stressIterations {
		seen := answers.Load()
		changes := map[string]string{}
		for range 10 {
			changes[fmt.Sprintf("a/%d", dice.IntN(100))] = fmt.Sprint(n)
		}
		gone := fmt.Sprintf("a/%d", 100+dice.IntN(10))
		r.change(entries, changes, []string{gone})
		r.put(entries, fmt.Sprintf("a/%d", 100+dice.IntN(10)), fmt.Sprint(n))
		for i := dice.IntN(stressReconnect); i < clients; i += stressReconnect {
			sinks[i].Close()
			if err := sinks[i].Connect(conns[i%len(conns)]); err != nil {
				t.Fatal(err)
			}
		}
		r.await("answers", func() bool { return answers.Load()-seen >= int64(clients/2) })
	}
	quiet.Store(true)
	last := map[string]string{}
	for name := range r.want(entries) {
		last[name] = "last"
	}
	r.change(entries, last, nil)
	applied, inconsistent := 0, 0
	for _, s := range sinks {
		n, differs := settle(t, s, r.want(entries))
		applied += n
		if differs != "" {
			inconsistent++
			t.Error(differs)
		}
	}
	t.Logf("%d clients, %d states: %d responses applied in %s, %d inconsistent", clients, stressIterations, applied, time.Since(begun).Round(time.Millisecond), inconsistent)
	for _, s := range sinks {
		s.Close()
	}
}

func connectAll(t *testing.T, sinks []*mcpsink.Follower, conns []*grpc.ClientConn) {
	t.Helper()
	for i, s := range sinks {
		if err := s.Connect(conns[i%len(conns)]); err != nil {
			t.Fatal(err)
		}
	}
}

// settle waits until a sink holds what it should, and returns how many responses it
// has applied, and what is wrong.
func settle(t *testing.T, s *mcpsink.Follower, want map[string]string) (n int, differs string) {
	t.Helper()
	timer := time.NewTimer(until.Patience)
	defer timer.Stop()
	for {
		if err := s.Read(entries, func(c *mcpsink.Collection, applied int) { n, differs = applied, difference(c, want) }); err != nil {
			t.Fatal(err)
		}
		if differs == "" {
			return n, ""
		}
		select {
		case <-s.Changed():
		case <-timer.C:
			return n, fmt.Sprintf("sink %s: %s", s.ID, differs)
		}
	}
}
