package istio

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// A process that knows nothing from before meets a registry that has lost
// nearly everything: what is not listed stays, what comes is written at once,
// and the third equal listing is applied.
func TestNearlyEmptyFirstListingTakesNothingAway(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, fleet("sc", 0, 20, 2)...)
	r.say(append(fleet("sc", 0, 1, 3), fleet("sc", 90, 1, 1)...)...)
	r.listed("sc")
	var warnings bytes.Buffer // of a handler that locks; read when the writer has ended
	g := fresh(t, api, r, brief, func(_ *Config, o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&warnings, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	g.Listed("sc")
	g.lacks(38)
	wants(t, api, hostOf(0), "10.0.0.1 10.0.0.2 10.0.0.3")
	wants(t, api, hostOf(90), "10.0.90.1")
	// Of 40 endpoints, or of some more if new ones were written before the API server was looked at.
	h := g.holdsFor("source sc since the start lacks 38 of the 4", hosts(1, 19)...)
	if h.Endpoints != 2 || h.Since.IsZero() || !strings.Contains(h.Reason, "isthmus sources release sc") {
		t.Errorf("%s is held: %d endpoints, %s", h.Name, h.Endpoints, h.Reason)
	}
	g.list()
	g.lacks(38)
	g.holds(hosts(1, 19)...)
	g.deleted()
	g.list()
	g.lacks(0)
	g.holds()
	g.deleted(hosts(1, 19)...)
	g.stop()
	if text := warnings.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "source=sc") || !strings.Contains(text, "lacks 38 of the 4") {
		t.Errorf("the warnings:\n%s", text)
	}
}

func TestEqualListingsHaveToSpanTheTime(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, fleet("sc", 0, 20, 2)...)
	r.listed("sc")
	g := fresh(t, api, r, long, nil)
	for range 6 {
		g.list()
		g.lacks(40)
	}
	g.holds(hosts(0, 20)...)
	g.deleted()
}

func TestWhatIsListedAgainIsNotHeld(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, fleet("sc", 0, 20, 2)...)
	r.say(fleet("sc", 0, 1, 2)...)
	r.listed("sc")
	g := fresh(t, api, r, brief, nil)
	g.Listed("sc")
	g.lacks(38)
	r.say(fleet("sc", 1, 18, 3)...)
	wants(t, api, hostOf(18), "10.0.18.1 10.0.18.2 10.0.18.3") // before the next listing
	g.holds(hostOf(19))                                        // few though they are
	g.list()
	g.lacks(2)
	r.say(fleet("sc", 19, 1, 2)...)
	g.list()
	g.lacks(0)
	g.holds()
	g.deleted()

	r.say(shop.NoService("sc", hostOf(19)), shop.NoInstance("sc", hostOf(19), "10.0.19.1"), shop.NoInstance("sc", hostOf(19), "10.0.19.2"))
	wants(t, api, hostOf(19), "no object")
}

// While something is missing, what has been listed since the start goes as the
// source's supervisor lets it.
func TestWhatWasListedSinceGoesAtOnce(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, fleet("sc", 0, 20, 2)...)
	r.say(fleet("sc", 0, 2, 2)...)
	r.listed("sc")
	g := fresh(t, api, r, long, nil)
	g.Listed("sc")
	g.lacks(36)
	g.holds(hosts(2, 18)...)
	r.say(shop.NoService("sc", hostOf(0)), shop.NoInstance("sc", hostOf(0), "10.0.0.1"), shop.NoInstance("sc", hostOf(0), "10.0.0.2"), shop.NoInstance("sc", hostOf(1), "10.0.1.2"))
	wants(t, api, hostOf(0), "no object")
	wants(t, api, hostOf(1), "10.0.1.1")
	g.holds(hosts(2, 18)...)
	g.deleted(hostOf(0))
}

func TestOperatorReleasesWhatFirstListingLacks(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, fleet("sc", 0, 20, 2)...)
	r.listed("sc")
	g := fresh(t, api, r, long, nil)
	g.Listed("sc")
	g.lacks(40)
	g.holds(hosts(0, 20)...)
	g.Released("sc")
	g.lacks(0)
	g.holds()
	g.deleted(hosts(0, 20)...)
}

func TestSmallLossIsAppliedAtOnce(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, fleet("sc", 0, 20, 2)...)
	r.say(append(fleet("sc", 0, 11, 2), fleet("sc", 50, 30, 2)...)...) // just more than half is there
	r.listed("sc")
	g := fresh(t, api, r, long, nil)
	g.Listed("sc")
	for _, host := range hosts(11, 9) {
		wants(t, api, host, "no object")
	}
	g.holds()
}

// What is missing goes after its own listings, whatever else comes back.
func TestListingsThatDifferConfirmWhatAllLack(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, fleet("sc", 0, 20, 2)...)
	r.listed("sc")
	g := fresh(t, api, r, brief, nil)
	g.Listed("sc")
	g.lacks(40)
	r.say(fleet("sc", 0, 1, 2)...)
	g.list()
	g.lacks(38)
	g.holds(hosts(1, 19)...)
	g.deleted()
	r.say(fleet("sc", 1, 1, 2)...)
	g.list()
	g.lacks(0)
	g.holds()
}

// Of a listing in which something could not be read, nobody knows what is
// really gone.
func TestListingThatIsNotWholeConfirmsNothing(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, fleet("sc", 0, 20, 2)...)
	r.listed("sc")
	g := fresh(t, api, r, brief, nil)
	for _, unread := range []bool{true, true, false, true, true, false, true} {
		g.unread.Store(unread)
		g.list()
		g.lacks(40)
	}
	g.holds(hosts(0, 20)...)
	g.deleted()
	r.say(fleet("sc", 0, 1, 2)...) // is back, and that is all that can be read
	g.list()
	g.lacks(38)
	g.unread.Store(false)
	g.list() // the third that is whole
	g.lacks(0)
	g.holds()
}

// What stays for no other reason than that something is rejected says so, and
// nothing about what the source loses from then on.
func TestWhatIsRejectedForLongMakesNothingElseSuspicious(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, fleet("sc", 0, 20, 2)...)
	r.say(fleet("sc", 0, 1, 2)...)
	r.listed("sc")
	g := fresh(t, api, r, brief, nil)
	g.unread.Store(true)
	for _, want := range []int{38, 38, 0, 0} {
		g.list()
		g.lacks(38)
		if got := g.suspected(); got != want {
			t.Errorf("%d endpoints are suspected, want %d", got, want)
		}
	}
	g.holdsFor("no listing confirms it from which something is rejected", hosts(1, 19)...)
	r.say(fleet("sc", 1, 1, 2)...)
	g.list()
	g.lacks(36)
	if got := g.suspected(); got != 0 {
		t.Errorf("%d endpoints are suspected as some are back, want 0", got)
	}
}

// Equal listings, too few of which span the time, are not helped by one that is
// not whole.
func TestListingThatIsNotWholeEndsNoSpan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api, r, before := piped(t), newRegistry("sc"), newRegistry("sc")
		before.say(fleet("sc", 0, 20, 2)...)
		before.listed("sc")
		writeAll(t, startAt(t, api.Config(), before, nil), before)
		r.listed("sc")
		g := freshAt(t, api.Server, api.Config(), r, hold.Config{Share: 0.5, Min: 10, For: time.Minute}, nil)
		for range 3 {
			g.list()
			g.lacks(40)
		}
		time.Sleep(time.Minute)
		g.unread.Store(true)
		g.list()
		g.lacks(40)
		g.unread.Store(false)
		g.list()
		g.lacks(0)
	})
}
