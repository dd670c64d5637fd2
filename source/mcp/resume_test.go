package mcp_test

import (
	"maps"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/source"
	sourcemcp "github.com/isthmus-mesh/isthmus/source/mcp"
)

func TestWhatIsHeldIsSaidWhenAStreamBeginsAgain(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(incremental(entries))
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1"), entry("shop/users", "7", "10.0.1.1"), garbage("shop/bad")))
		s.close()
		r.pass(0)
		m.is(source.StateStale, "has ended the stream")
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1", "Service shop/users", "Endpoint shop/users/10.0.1.1")
		s = r.stream()
		if got := s.asked(1)[entries].GetInitialResourceVersions(); !maps.Equal(got, map[string]string{"shop/cart": "1", "shop/users": "7", "shop/bad": "x"}) {
			t.Errorf("what is held is said to be %v", got)
		}
		// The peer resumes: a removal counts, and what it is silent about stays.
		s.acked(s.send(&mcp.Resources{Collection: entries, Incremental: true, RemovedResources: []string{"shop/users"}, Resources: many(entry("shop/pay", "1", "10.0.2.1"))}))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1", "Service shop/pay", "Endpoint shop/pay/10.0.2.1")
		m.is(source.StateLive, "")
	})
}

// Everything that the peer has may be removed by name while nobody was connected.
func TestARemovalWhileAwayIsNotHeld(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(incremental(entries))
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1")))
		s.close()
		s = r.stream()
		s.asked(1)
		s.acked(s.send(&mcp.Resources{Collection: entries, Incremental: true, RemovedResources: []string{"shop/cart"}}))
		r.holds()
		m.is(source.StateLive, "")
	})
}

// Galley sends everything as added, whatever it is said that the sink holds, so that
// what was deleted meanwhile is never removed. It shows by sending again what is held.
func TestAPeerThatDoesNotResumeLeavesNothingBehind(t *testing.T) {
	bubble(t, func(r *rig) {
		_, s := r.begin(incremental(entries))
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1"), entry("shop/users", "1", "10.0.1.1"), entry("shop/pay", "1", "10.0.2.1")))
		s.close()
		s = r.stream()
		s.asked(1)
		s.acked(s.send(&mcp.Resources{Collection: entries, Incremental: true, Resources: many(entry("shop/cart", "1", "10.0.0.1"), entry("shop/pay", "2", "10.0.2.2"))}))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1", "Service shop/pay", "Endpoint shop/pay/10.0.2.2")
	})
}

// After a restart of Isthmus no version is known, so an increment is one to nothing.
func TestTheFirstIncrementOfAProcessIsEverything(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(incremental(entries))
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1"), entry("shop/users", "1", "10.0.1.1"), entry("shop/pay", "1", "10.0.2.1")))
		m.stop()
		m, s = r.begin(incremental(entries))
		m.is(source.StateStale, "last known good")
		s.acked(s.send(&mcp.Resources{Collection: entries, Incremental: true, Resources: many(entry("shop/cart", "1", "10.0.0.1"), entry("shop/pay", "1", "10.0.2.1"))}))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1", "Service shop/pay", "Endpoint shop/pay/10.0.2.1")
	})
}

func TestWithoutIncrementsNothingIsResumed(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(only(entries))
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1")))
		s.close()
		s = r.stream()
		if q := s.asked(1)[entries]; len(q.GetInitialResourceVersions()) > 0 || q.GetIncremental() {
			t.Errorf("asked by %v", q)
		}
		r.pass(4 * time.Second)
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1")
		s.acked(s.full(entries)) // the peer has restarted, empty
		m.is(source.StateHeld, "")
		r.holds("Service shop/cart (held)", "Endpoint shop/cart/10.0.0.1 (held)")
	})
}

// A peer may know fewer collections than there are. What was stored of the others stays.
func TestACollectionThatDoesNotComeHoldsUpNothingForLong(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(only(entries, destRules))
		s.full(destRules, resource("shop/rule", "1", &networking.DestinationRule{Host: "h"}))
		s.full(entries, entry("shop/cart", "1", "10.0.0.1"))
		s.request()
		s.request()
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1", "DestinationRule shop/rule")
		m.stop() // else what was sent of it before is known
		m, s = r.begin(only(entries, destRules))
		s.acked(s.full(entries, entry("shop/cart", "2", "10.0.0.2")))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1", "DestinationRule shop/rule")
		r.pass(6 * time.Second)
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.2", "DestinationRule shop/rule (stale)")
		if n := m.Status().Notices; len(n) != 1 || n[0].Object != "collection "+destRules {
			t.Errorf("the notices are %v", n)
		}
		s.acked(s.full(destRules)) // it comes after all
		if n := m.Status().Notices; len(n) != 0 {
			t.Errorf("the notices are %v", n)
		}
		m.rejects()
	})
}

func TestAPeerThatSendsNothingIsAnOutage(t *testing.T) {
	bubble(t, func(r *rig) {
		m, _ := r.begin(only(entries))
		r.pass(31 * time.Second)
		m.is(source.StateListing, "sent no collection within 30s")
		r.stream()
	})
}

// Galley ends the stream for a collection that it does not know.
func TestACollectionThatThePeerDoesNotKnowIsNotAskedForAgain(t *testing.T) {
	bubble(t, func(r *rig) {
		m := r.mirror(sourcemcp.Config{})
		r.stream().fail(status.Errorf(codes.InvalidArgument, "unsupported collection %q", groups))
		r.pass(0)
		m.is(source.StateListing, groups+" is not requested any more")
		s := r.stream()
		for c := range s.asked(4) {
			s.full(c)
		}
		m.is(source.StateLive, "")
		if n := m.Status().Notices; len(n) != 1 || n[0].Object != "collection "+groups {
			t.Errorf("the notices are %v", n)
		}
	})
}

func TestAConfiguredCollectionIsAskedForAgain(t *testing.T) {
	bubble(t, func(r *rig) {
		m := r.mirror(only(entries, groups))
		r.stream().fail(status.Errorf(codes.InvalidArgument, "unsupported collection %q", groups))
		r.pass(0)
		m.is(source.StateListing, "list the served ones in collections")
		r.stream().asked(2)
	})
}

// That a collection of a kind has not come says nothing for another one of that kind.
func TestWhatIsGoneFromOneCollectionIsNotKeptForAnother(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(only(entries, synthetic))
		s.full(entries, entry("shop/cart", "1", "10.0.0.1"), entry("shop/users", "1", "10.0.1.1"), entry("shop/pay", "1", "10.0.2.1"))
		s.full(synthetic, entry("shop/made", "1", "10.0.3.1"))
		s.request()
		s.request()
		m.stop()
		_, s = r.begin(only(entries, synthetic))
		s.full(entries, entry("shop/cart", "1", "10.0.0.1"), entry("shop/pay", "1", "10.0.2.1"))
		r.pass(6 * time.Second)
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1", "Service shop/pay", "Endpoint shop/pay/10.0.2.1",
			"Service shop/made (stale)", "Endpoint shop/made/10.0.3.1")
	})
}

// A peer that has sent a collection has it, whatever it ends a stream for.
func TestACollectionThatHasComeIsAskedForAgain(t *testing.T) {
	bubble(t, func(r *rig) {
		m := r.mirror(sourcemcp.Config{})
		s := r.stream()
		for c := range s.asked(5) {
			s.full(c)
		}
		s.fail(status.Errorf(codes.InvalidArgument, "a defect with %q", entries))
		r.pass(0)
		m.is(source.StateStale, "list the served ones in collections")
		r.stream().asked(5)
	})
}
