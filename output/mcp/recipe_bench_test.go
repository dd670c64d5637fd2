package mcp_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	wire "github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/output/mcp"
	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/test/testkit/mcpsink"
	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// The numbers of the run that the reference implementation publishes, but for the clients:
// -clients says how many.
const (
	recipeCollections = 50
	recipeChanges     = 10 // of a collection in a state are fewer
	recipeEvery       = time.Millisecond
)

// BenchmarkRecipe is the run that the reference implementation publishes figures of:
// sinks of full states, each with a connection of its own and 50 collections, connect
// while a hundred states are published, a millisecond after one another, and NACK one
// answer in ten. Both ends are in this process. It counts what has been applied when
// the last state is published, as that run does, and goes on until every sink has
// all of the last.
func BenchmarkRecipe(b *testing.B) {
	for _, tcp := range []bool{true, false} {
		b.Run(map[bool]string{true: "tcp", false: "memory"}[tcp], func(b *testing.B) {
			for b.Loop() {
				recipe(b, tcp)
			}
		})
	}
}

func recipe(b *testing.B, tcp bool) {
	b.Helper()
	clients, names := *stressClients, make([]string, recipeCollections)
	for i := range names {
		names[i] = fmt.Sprintf("test/collection%d", i)
	}
	r := newRig(b, setup{tcp: tcp, collections: names, limits: mcp.Limits{Limits: streams.Limits{StreamsPerClient: 2 * clients}}})
	dice := rand.New(rand.NewPCG(3, 0)) //nolint:gosec // the same each time
	r.publish(dice)
	var answers atomic.Int64
	var quiet atomic.Bool // nobody NACKs any more
	sinks := make([]*mcpsink.Follower, clients)
	begun, used := time.Now(), probe.CPU(b, os.Getpid())
	for i := range sinks {
		dice := rand.New(rand.NewPCG(1, uint64(i))) //nolint:gosec // the same each time
		sinks[i] = &mcpsink.Follower{ID: fmt.Sprint(i), Collections: names, Decide: func(*wire.Resources) (string, bool) {
			answers.Add(1)
			if !quiet.Load() && dice.IntN(stressNACK) == 0 {
				return "one in ten", false
			}
			return "", false
		}}
		if err := sinks[i].Connect(r.dial()); err != nil {
			b.Fatal(err)
		}
	}
	connected := time.Since(begun)
	tick := time.NewTicker(recipeEvery)
	defer tick.Stop()
	for range stressIterations {
		<-tick.C
		r.publish(dice)
	}
	byThen, published := answers.Load(), time.Since(begun)
	quiet.Store(true)
	r.publishLast()
	for _, s := range sinks {
		awaitAll(b, s, names, r.now)
	}
	all, took, spent := answers.Load(), time.Since(begun), probe.CPU(b, os.Getpid())-used
	b.ReportMetric(connected.Seconds(), "connect-s")
	b.ReportMetric(published.Seconds(), "publish-s")
	b.ReportMetric(float64(byThen), "updates-by-then")
	b.ReportMetric(float64(byThen)/published.Seconds(), "updates/s-by-then")
	b.ReportMetric(took.Seconds(), "all-s")
	b.ReportMetric(float64(all), "updates")
	b.ReportMetric(float64(all)/took.Seconds(), "updates/s")
	b.ReportMetric(float64(all)/spent.Seconds(), "updates/cpu-s")
	for _, s := range sinks {
		s.Close()
	}
	r.stop()
}

// publish publishes a state in which some resources of each collection are new, others
// and gone.
func (r *rig) publish(dice *rand.Rand) {
	next := &served{make([]map[string]*subject, len(r.now.contents)), true}
	u := world.Update{World: next, Committed: time.Now()}
	for row, before := range r.now.contents {
		after := maps.Clone(before)
		if after == nil {
			after = map[string]*subject{}
		}
		for range dice.IntN(recipeChanges) {
			name := fmt.Sprintf("a/%d", dice.IntN(len(after)+3))
			if delete(after, name); dice.IntN(3) > 0 {
				after[name] = &subject{world.Row(row), name, fmt.Sprint(dice.Uint64())} //nolint:gosec // a small number
			}
			u.Changed = append(u.Changed, world.Changed{Row: world.Row(row), Name: name}) //nolint:gosec // a small number
		}
		next.contents[row] = after
	}
	r.now = next
	r.producer.Publish(u)
}

// publishLast publishes a state that nobody has NACKed.
func (r *rig) publishLast() {
	next := &served{slices.Clone(r.now.contents), true}
	u := world.Update{World: next, Committed: time.Now()}
	for row := range next.contents {
		next.contents[row] = maps.Clone(next.contents[row])
		next.contents[row]["a/last"] = &subject{world.Row(row), "a/last", "last"}         //nolint:gosec // a small number
		u.Changed = append(u.Changed, world.Changed{Row: world.Row(row), Name: "a/last"}) //nolint:gosec // a small number
	}
	r.now = next
	r.producer.Publish(u)
}

// awaitAll waits until a sink holds all of a state.
func awaitAll(b *testing.B, s *mcpsink.Follower, names []string, w *served) {
	b.Helper()
	limit := time.NewTimer(until.Patience)
	defer limit.Stop()
	for row, name := range names {
		want := map[string]string{}
		for n, subject := range w.contents[row] {
			want[n] = subject.content
		}
		for {
			differs := ""
			if err := s.Read(name, func(c *mcpsink.Collection, _ int) { differs = difference(c, want) }); err != nil {
				b.Fatal(err)
			}
			if differs == "" {
				break
			}
			select {
			case <-s.Changed():
			case <-limit.C:
				b.Fatalf("sink %s, %s: %s", s.ID, name, differs)
			}
		}
	}
}
