package admin_test

import (
	"context"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output"
)

// However often the status is read, one search for services that lose listeners runs at a
// time, no request waits for a long one, and it ends. Its pause is in proportion to it.
func TestTheStatusWaitsForNoLongSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, _ := serveSingle(t)
		var searches atomic.Int32
		var long, panics atomic.Bool
		long.Store(true)
		status := statusOf(t, &output.Clients{Engine: engine, Losers: func(ctx context.Context, _ *catalog.Snapshot) iter.Seq2[catalog.ServiceKey, catalog.Conflict] {
			return func(yield func(catalog.ServiceKey, catalog.Conflict) bool) {
				searches.Add(1)
				if panics.Load() {
					panic("a fault")
				}
				for _, host := range []string{"b.example", "a.example"} {
					if !yield(catalog.ServiceKey{Namespace: "shop", Host: host}, catalog.Conflict{Lost: model.Ref{Kind: model.KindService}}) {
						return
					}
				}
				if long.Load() {
					<-ctx.Done()
				}
			}
		}})
		expect := func(when string, n int32, problems ...string) {
			t.Helper()
			began := time.Now()
			s := status()
			if took := time.Since(began); took > 100*time.Millisecond {
				t.Errorf("%s: the status took %s", when, took)
			}
			if s.Wrong || len(s.Findings) != len(problems) {
				t.Fatalf("%s: the findings are %+v, want %q", when, s.Findings, problems)
			}
			for i, f := range s.Findings {
				if !strings.HasPrefix(f.Problem, problems[i]) || !strings.HasPrefix(f.Next, "isthmus services --conflicts") {
					t.Errorf("%s: a finding is %+v, want %q", when, f, problems[i])
				}
			}
			if got := searches.Load(); got != n {
				t.Errorf("%s: %d searches, want %d", when, got, n)
			}
		}
		const unknown = "unknown whether services lose listeners to others: "
		for range 10 {
			expect("while a search runs", 1)
		}
		time.Sleep(10 * time.Second)
		expect("after it was given up", 1, unknown+"the search takes longer than 10s")
		long.Store(false)
		time.Sleep(8 * time.Minute)
		expect("during the pause", 1, unknown+"the search takes longer than 10s")
		time.Sleep(time.Minute)
		expect("after the pause", 2, "2 services lose listeners or routes to others, the first are a.example, b.example")
		expect("after a short search", 3, "2 services lose listeners or routes to others, the first are a.example, b.example")
		panics.Store(true)
		expect("after a panic", 4, unknown+"panic: a fault")
		panics.Store(false)
		expect("once it has ended", 5, "2 services lose listeners or routes to others, the first are a.example, b.example")
		long.Store(true)
		expect("while the process ends", 6, "2 services lose listeners or routes to others, the first are a.example, b.example")
	})
}
