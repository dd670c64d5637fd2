package catalog_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/gate"
	"github.com/isthmus-mesh/isthmus/model"
)

// passed is one snapshot that a gate let through.
type passed struct {
	Names            []string
	Primed, Complete bool
}

// gated publishes to a gate what a builder makes of commits.
type gated struct {
	*gate.Gate
	builder *catalog.Builder
	passed  []passed
	newest  *catalog.Snapshot
}

func gateFor(required, optional []string) *gated {
	g := &gated{builder: catalog.NewBuilder(order)}
	g.Gate = gate.New(required, optional, time.Minute, func(s *catalog.Snapshot, c catalog.Change, complete bool) {
		g.passed, g.newest = append(g.passed, passed{names(c), c.Primed, complete}), s
	})
	return g
}

func (g *gated) commit(records ...model.Record) {
	change := g.builder.Apply(g.builder.Snapshot().Revision+1, upserts(records...))
	g.Publish(g.builder.Snapshot(), change)
}

func (g *gated) expect(t *testing.T, when string, want ...passed) {
	t.Helper()
	if diff := cmp.Diff(want, g.passed); diff != "" {
		t.Errorf("%s (-want +passed):\n%s", when, diff)
	}
	g.passed = nil
}

func TestNothingPassesBeforeRequiredSourcesArePrimed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gateFor([]string{"a", "b"}, nil)
		defer g.Stop()
		g.commit(shopRecord, one)
		g.commit(mark("a"))
		time.Sleep(time.Hour)
		g.expect(t, "b is not primed, however long it takes")
		if got := g.Missing(); !slices.Equal(got, []string{"b"}) {
			t.Errorf("missing are %q", got)
		}
		if g.Snapshot() != g.builder.Snapshot() {
			t.Error("the newest snapshot cannot be looked at")
		}
		g.commit(barRecord, mark("b"))
		g.expect(t, "all are primed", passed{[]string{"ns/bar", "ns/shop", "ns/shop 80 10.0.0.1:80"}, true, true})
		if got := g.Missing(); len(got) > 0 || g.newest != g.builder.Snapshot() {
			t.Errorf("missing are %q; the newest snapshot passed: %t", got, g.newest == g.builder.Snapshot())
		}
		g.commit(two)
		g.expect(t, "another endpoint", passed{[]string{"ns/shop", "ns/shop 80 10.0.0.2:80"}, false, true})
		g.commit(two)
		g.expect(t, "nothing changed")
	})
}

func TestOtherSourcesAreWaitedForOnlySoLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gateFor([]string{"a"}, []string{"b"})
		defer g.Stop()
		g.commit(shopRecord, mark("a"))
		time.Sleep(time.Minute - time.Second)
		g.expect(t, "b may still come")
		if got := g.Missing(); !slices.Equal(got, []string{"b"}) {
			t.Errorf("missing are %q", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		g.expect(t, "the wait is over", passed{[]string{"ns/shop"}, true, false})
		g.commit(mark("b"))
		g.expect(t, "b came late", passed{[]string{}, true, true})
	})
}

func TestTheWaitDoesNotEndThatForRequiredSources(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gateFor([]string{"a"}, []string{"b"})
		defer g.Stop()
		g.commit(shopRecord)
		time.Sleep(time.Hour)
		g.expect(t, "a is not primed")
		g.commit(mark("a"))
		g.expect(t, "a is primed, and b was waited for", passed{[]string{"ns/shop"}, true, false})
	})
}

// An empty catalog is an answer too: the registry says that there is nothing.
func TestAnEmptyRegistryPasses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gateFor([]string{"a"}, nil)
		defer g.Stop()
		g.commit(mark("a"))
		g.expect(t, "a is empty", passed{[]string{}, true, true})
	})
}

func TestAStoppedGateIsShut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gateFor(nil, []string{"b"})
		g.Stop()
		time.Sleep(time.Hour)
		g.commit(mark("b"))
		g.expect(t, "stopped")
	})
}

// Before the store was read nobody knows what there is, whatever the clock says.
func TestNothingPassesBeforeTheStoreWasRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gateFor(nil, []string{"b"})
		defer g.Stop()
		time.Sleep(time.Hour)
		g.expect(t, "nothing was read")
		g.commit(shopRecord)
		g.expect(t, "the store was read", passed{[]string{"ns/shop"}, false, false})
	})
}

// An operator changes what is waited for while the gate is shut.
func TestASourceThatIsNoLongerRequiredOpensTheGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gateFor([]string{"a", "b"}, nil)
		defer g.Stop()
		g.commit(shopRecord, mark("a"))
		g.Require([]string{"a", "c"}, nil)
		g.expect(t, "c took the place of b")
		if got := g.Missing(); !slices.Equal(got, []string{"c"}) {
			t.Errorf("missing are %q", got)
		}
		g.Require([]string{"a"}, nil)
		g.expect(t, "a alone is required", passed{[]string{"ns/shop"}, true, true})
	})
}

// What is served is not taken back, and whoever asks for what is not there is
// names at once whether it may still come.
func TestAnOpenGateStaysOpenWhateverIsRequired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gateFor([]string{"a"}, nil)
		defer g.Stop()
		g.commit(shopRecord, mark("a"))
		g.expect(t, "open", passed{[]string{"ns/shop"}, true, true})
		g.Require([]string{"a", "b"}, nil)
		g.expect(t, "b may bring more", passed{[]string{}, false, false})
		if got := g.Missing(); len(got) > 0 {
			t.Errorf("missing are %q", got)
		}
		g.commit(barRecord)
		g.expect(t, "a change passes", passed{[]string{"ns/bar"}, false, false})
		g.Require([]string{"a"}, []string{"b"})
		g.expect(t, "b is still awaited, if less")
		g.Require([]string{"a"}, nil)
		g.expect(t, "b is not awaited any more", passed{[]string{}, false, true})
	})
}

// While an output takes a snapshot, nobody waits for it: neither the merger, which
// publishes the next, nor whoever looks.
func TestWhatIsBehindTheGateKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := catalog.NewBuilder(order)
		free := make(chan struct{})
		var passed [][]string
		g := gate.New(nil, nil, time.Minute, func(_ *catalog.Snapshot, c catalog.Change, _ bool) {
			passed = append(passed, names(c))
			<-free
		})
		defer g.Stop()
		publish := func(host string) {
			change := b.Apply(b.Snapshot().Revision+1, upserts(service("files", host, host)))
			g.Publish(b.Snapshot(), change)
		}
		go publish("a.example")
		synctest.Wait()
		publish("b.example")
		publish("c.example")
		if missing := g.Missing(); len(missing) > 0 || g.Snapshot().Revision != 3 {
			t.Errorf("missing %v, at revision %d", missing, g.Snapshot().Revision)
		}
		close(free)
		synctest.Wait()
		if diff := cmp.Diff([][]string{{"ns/a.example"}, {"ns/b.example", "ns/c.example"}}, passed); diff != "" {
			t.Errorf("passed (-want):\n%s", diff)
		}
	})
}
