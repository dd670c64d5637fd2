package mcp_test

import (
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/source"
	sourcemcp "github.com/isthmus-mesh/isthmus/source/mcp"
)

// only asks for one collection.
func only(collections ...string) sourcemcp.Config {
	return sourcemcp.Config{Collections: collections}
}

func incremental(collections ...string) sourcemcp.Config {
	return sourcemcp.Config{Collections: collections, Incremental: true}
}

// begin opens a stream with one collection, of which this is all there is.
func (r *rig) begin(c sourcemcp.Config) (*mirror, *stream) {
	r.Helper()
	m := r.mirror(c)
	s := r.stream()
	s.asked(max(len(c.Collections), 1))
	return m, s
}

func TestEveryCollectionIsAskedForOnceAndListedTogether(t *testing.T) {
	bubble(t, func(r *rig) {
		m := r.mirror(sourcemcp.Config{})
		s := r.stream()
		asked := s.asked(5)
		for _, c := range []string{entries, synthetic, sidecars, workloads, groups} {
			q := asked[c]
			if q.GetSinkNode().GetId() != "here" || q.GetIncremental() || len(q.GetInitialResourceVersions()) > 0 {
				t.Errorf("%s is asked for by %v", c, q)
			}
		}
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1")))
		for _, c := range []string{sidecars, workloads, groups} {
			s.acked(s.full(c))
		}
		r.holds()
		m.is(source.StateListing, "")
		s.acked(s.full(synthetic, entry("shop/users", "1", "10.0.1.1")))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1", "Service shop/users", "Endpoint shop/users/10.0.1.1")
		m.is(source.StateLive, "")
		s.silent()
	})
}

// Pilot's own sink drops an increment without objects, and an empty state.
func TestAFullStateReplacesWhatWasThere(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(only(entries))
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1"), entry("shop/users", "1", "10.0.1.1"), entry("shop/pay", "1", "10.0.2.1")))
		s.acked(s.full(entries, entry("shop/cart", "2", "10.0.0.2"), entry("shop/pay", "1", "10.0.2.1"), entry("shop/new", "1", "10.0.3.1")))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.2", "Service shop/pay", "Endpoint shop/pay/10.0.2.1", "Service shop/new", "Endpoint shop/new/10.0.3.1")
		m.is(source.StateLive, "")

		// What went just before is part of the same loss, and comes back; not so what was replaced.
		s.acked(s.full(entries))
		r.holds("Service shop/cart (held)", "Endpoint shop/cart/10.0.0.2 (held)", "Service shop/users (held)", "Endpoint shop/users/10.0.1.1 (held)",
			"Service shop/pay (held)", "Endpoint shop/pay/10.0.2.1 (held)", "Service shop/new (held)", "Endpoint shop/new/10.0.3.1 (held)")
		m.is(source.StateHeld, "")
		r.pass(2 * time.Minute)
		r.holds()
		m.is(source.StateLive, "")
		s.silent()
	})
}

func TestIncrementsAreUpsertsAndRemovals(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(incremental(entries))
		if q := s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1"), entry("shop/users", "1", "10.0.1.1"))); !q.GetIncremental() {
			t.Errorf("increments are not asked for any more: %v", q)
		}
		s.acked(s.send(&mcp.Resources{Collection: entries, Incremental: true, Resources: many(entry("shop/cart", "2", "10.0.0.2"), entry("shop/pay", "1", "10.0.2.1"))}))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.2", "Service shop/users", "Endpoint shop/users/10.0.1.1", "Service shop/pay", "Endpoint shop/pay/10.0.2.1")

		// Removals alone, some of what nobody knows, and nothing at all.
		s.acked(s.send(&mcp.Resources{Collection: entries, Incremental: true, RemovedResources: []string{"shop/users", "shop/none"}}))
		s.acked(s.send(&mcp.Resources{Collection: entries, Incremental: true}))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.2", "Service shop/pay", "Endpoint shop/pay/10.0.2.1")
		s.acked(s.send(&mcp.Resources{Collection: entries, Incremental: true, RemovedResources: []string{"shop/cart", "shop/pay"}}))
		r.holds() // a removal by name is never held
		m.is(source.StateLive, "")
		// A full state counts at any time, and nothing that it calls removed.
		s.acked(s.send(&mcp.Resources{Collection: entries, Resources: many(entry("shop/cart", "3", "10.0.0.3")), RemovedResources: []string{"shop/cart"}}))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.3")
	})
}

// What is held is removed by name like anything else.
func TestARemovalByNameEndsAHold(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(incremental(entries))
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1")))
		s.acked(s.full(entries))
		m.is(source.StateHeld, "")
		s.acked(s.send(&mcp.Resources{Collection: entries, Incremental: true, RemovedResources: []string{"shop/cart"}}))
		r.holds()
		m.is(source.StateLive, "")
	})
}

func TestOneBadResourceNeverBlocksACollection(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(only(entries))
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1"), entry("shop/users", "1", "10.0.1.1"), entry("shop/pay", "1", "10.0.2.1")))
		bad := entrySpec("shop/users", "2", "under_score", 80, []string{"10.0.1.2"})
		s.acked(s.full(entries, entry("shop/cart", "2", "10.0.0.2"), bad, garbage("shop/pay"), entry("noslash", "1")))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.2", "Service shop/users (stale)", "Endpoint shop/users/10.0.1.1",
			"Service shop/pay (stale)", "Endpoint shop/pay/10.0.2.1")
		m.rejects("ServiceEntry noslash", "names no object", "ServiceEntry shop/pay", "body: cannot be decoded", "ServiceEntry shop/users", "is not a part of a DNS name")
		s.acked(s.full(entries, entry("shop/cart", "2", "10.0.0.2"), entry("shop/users", "3", "10.0.1.3"), entry("shop/pay", "3", "10.0.2.3")))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.2", "Service shop/users", "Endpoint shop/users/10.0.1.3", "Service shop/pay", "Endpoint shop/pay/10.0.2.3")
		m.rejects()
	})
}

// Of a resource without a name nobody knows which one it is: what seems to be missing
// may be it.
func TestWhatANamelessResourceMayBeIsKept(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(only(entries))
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1"), entry("shop/users", "1", "10.0.1.1")))
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1"), entry("", "1")))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1", "Service shop/users", "Endpoint shop/users/10.0.1.1")
		m.rejects("ServiceEntry without a name", "metadata.name is missing")
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1")))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1")
		m.rejects()
	})
}

func TestAnAnswerOfWhichNothingCanBeDecodedIsNACKed(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(incremental(entries))
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1")))
		s.nacked(s.full(entries, garbage("shop/cart"), garbage("shop/users")), 3, "none of the 2 resources can be decoded")
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1")
		m.is(source.StateLive, "")
		// What can be applied of an increment is.
		s.acked(s.send(&mcp.Resources{Collection: entries, Incremental: true, Resources: many(garbage("shop/users")), RemovedResources: []string{"shop/cart"}}))
		r.holds()
		m.rejects("ServiceEntry shop/users", "body: cannot be decoded")
	})
}

func TestACollectionNobodyAskedForIsNACKedWithoutHarm(t *testing.T) {
	bubble(t, func(r *rig) {
		_, s := r.begin(only(entries))
		s.nacked(s.full(sidecars), 12, "was not asked for")
		s.nacked(s.full(mcp.TriggerCollection), 12, "was not asked for")
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1")))
		s.nacked(s.full("../etc/passwd", garbage("x/y")), 12, "was not asked for")
		s.acked(s.full(entries, entry("shop/cart", "2", "10.0.0.2")))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.2")
	})
}

func TestEachCollectionIsAccountedFor(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(only(entries, sidecars))
		s.full(entries, entry("shop/cart", "1", "10.0.0.1"))
		s.full(sidecars)
		s.request()
		s.request()
		r.pass(time.Minute)
		s.nacked(s.full(entries, garbage("shop/cart")), 3, "decoded")
		got := m.Exchanges()
		if len(got) != 2 || got[0].Type != entries || got[1].Type != sidecars {
			t.Fatalf("%+v", got)
		}
		if e := got[0]; e.Resources != 1 || e.Received != 2 || e.ACKed != 1 || e.NACKed != 1 || !e.Last.Equal(time.Now()) || e.NACK == "" {
			t.Errorf("%+v", e)
		}
		if e := got[1]; e.Resources != 0 || e.Received != 1 || e.ACKed != 1 || e.NACKed != 0 || time.Since(e.Last) != time.Minute {
			t.Errorf("%+v", e)
		}
	})
}

func TestANACKIsShownUntilSomethingIsACKed(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(only(entries))
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1")))
		s.nacked(s.full(entries, garbage("shop/cart")), 3, "decoded")
		if n := m.Status().Notices; len(n) != 1 || n[0].Object != "collection "+entries {
			t.Errorf("the notices are %v", n)
		}
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1")))
		if n := m.Status().Notices; len(n) != 0 {
			t.Errorf("the notices are %v", n)
		}
		if e := m.Exchanges(); e[0].NACK != "" || e[0].NACKed != 1 {
			t.Errorf("%+v", e)
		}
	})
}
