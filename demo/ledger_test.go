package demo

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/admin"
)

// history is a ledger and a clock that begins with a change of the registry.
type history struct {
	*ledger
	start time.Time
}

func newHistory() history {
	start := time.Now()
	h := history{newLedger(func(time.Time) time.Time { return start }), start}
	h.introduce("127.0.0.1:1", "cart", "cart-1")
	return h
}

func (h history) at(ms int) time.Time { return h.start.Add(time.Duration(ms) * time.Millisecond) }

func (h history) changes(ms int) (list []string) {
	for _, c := range h.look(h.at(ms)).changes {
		list = append(list, c.backend+" "+c.text())
	}
	return list
}

func TestWhoAnswersHasJoinedAndWhoIsNotEvenTriedHasLeft(t *testing.T) {
	t.Parallel()
	h := newHistory()
	h.answered("cart", "cart-1", h.at(60))
	h.answered("cart", "cart-1", h.at(70))
	mustBe(t, h.changes(100), "cart-1 joined 60 ms after the registry changed")

	h.tried("127.0.0.1:1", h.at(1000))
	mustBe(t, h.changes(1900)) // it does not answer, but it is tried
	mustBe(t, h.changes(2001), "cart-1 left 1000 ms after the registry changed")
	mustBe(t, h.changes(5000))

	h.answered("cart", "cart-1", h.at(6000))
	mustBe(t, h.changes(6000), "cart-1 joined 6000 ms after the registry changed")
}

func TestAttemptsToReachOthersAreNobodys(t *testing.T) {
	t.Parallel()
	h := newHistory()
	h.tried("127.0.0.1:2", h.at(1))
	if v := h.look(h.at(2)); len(v.services) != 0 {
		t.Errorf("services %v", v.services)
	}
}

func TestChangesThatNobodyLooksAtAreBounded(t *testing.T) {
	t.Parallel()
	h := newHistory()
	for n := range 3 * maxChanges {
		h.report(change{service: "cart", at: h.at(n)})
	}
	changes := h.look(h.at(0)).changes
	if len(changes) != maxChanges || !changes[maxChanges-1].at.Equal(h.at(3*maxChanges-1)) {
		t.Errorf("%d changes, the last from %s", len(changes), changes[len(changes)-1].at)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	h := newHistory()
	h.introduce("127.0.0.1:2", "cart", "cart-2")
	h.introduce("127.0.0.1:3", "cart", "cart-3")
	h.answered("cart", "cart-2", h.at(20))
	h.tried("127.0.0.1:2", h.at(1900))
	h.tried("127.0.0.1:3", h.at(1900))
	h.answered("cart", "cart-1", h.at(1500))
	h.answered("cart", "cart-1", h.at(1600))
	h.answered("reviews", "reviews-1", h.at(10))
	h.failed("reviews", errors.New("no route"))
	v := h.look(h.at(2000))
	v.sources = []admin.Source{{State: "live", Services: 2, Endpoints: 3, Rejected: []admin.Rejected{
		{Where: "cart.yaml:7", Field: "spec.hosts", Reason: "missing: name a host"}, {Where: "cart.yaml:9"},
	}}}
	want := `SERVICE   BACKEND     ANSWERED   LAST SECOND        LAST CHANGE
cart      cart-1             2   ■■■■■■■■■■ 100 %   cart-1 joined 1500 ms after the registry changed
          cart-2             1   lost, retrying
          cart-3             0   trying
reviews   reviews-1          1   left               reviews-1 left 10 ms after the registry changed

registry   live, 2 services, 3 endpoints, rejected at cart.yaml:7: spec.hosts: missing: name a host (and 1 more)
calls      4 answered, 1 failed, the last one: no route`
	if diff := cmp.Diff(want, v.table()); diff != "" {
		t.Error(diff)
	}
}

func mustBe(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
