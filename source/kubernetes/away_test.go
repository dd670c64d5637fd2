package kubernetes_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/sourcetest"
	"github.com/isthmus-mesh/isthmus/store"
)

// However a cluster cannot be read, within two minutes the source says so and why, and goes
// on saying it. Everything stays, and it recovers.
func TestSourceSaysThatItsClusterCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { mustSaySo(t, f.fault, f.last, 2*time.Minute, "") })
		})
	}
}

// A balancer that accepts connections without an API server behind it is found out as soon
// as an API server that is not there.
func TestBalancerWithoutAnAPIServerIsReported(t *testing.T) {
	t.Parallel()
	for reason, f := range map[string]fault{"closed before an answer came": closes, "connection reset by peer": resets} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { mustSaySo(t, f, ends, soon, reason) })
		})
	}
}

// soon is how long a source may take to report that its API server is away. It takes 5 s
// itself.
const soon = 6 * time.Second

// A list that works does not stand for a watch that ends at once.
func TestWatchThatEndsAtOnceHasNotBegun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, stored := newRegistry(false), store.NewMemory(store.Config{})
		r.Set(sourcetest.Services{"a.example": {Endpoints: pair}, "b.example": {Endpoints: pair}})
		s, stop := supervised(t, r, stored)
		defer stop()
		mustHave(t, s, stored)
		r.api.fail(only("services", func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Get("watch") == "" {
				return nil, nil
			}
			return body(http.StatusOK, ""), nil
		}), ends)
		for range soon / (50 * time.Millisecond) {
			pass(50 * time.Millisecond)
			if state := s.Status(); state.State == source.StateStale {
				if !strings.Contains(state.Reason, "services: the watch ended at once") {
					t.Errorf("the reason is %q", state.Reason)
				}
				return // the next run lists them, and is live until it fails
			}
		}
		t.Errorf("it does not say so within %s", soon)
	})
}

var pair = []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:8080"), netip.MustParseAddrPort("10.0.0.2:8080")}

func mustSaySo(t *testing.T, f fault, last func(*stream), within time.Duration, reason string) {
	t.Helper()
	r, stored := newRegistry(false), store.NewMemory(store.Config{})
	r.Set(sourcetest.Services{"a.example": {Endpoints: pair}, "b.example": {Endpoints: pair}})
	s, stop := supervised(t, r, stored)
	defer stop()
	mustHave(t, s, stored)
	before := uids(stored)

	r.api.fail(f, last)
	failed := time.Now()
	pass(within)
	for range 20 {
		state := s.Status()
		if state.State != source.StateStale || !strings.HasPrefix(state.Reason, "http://api.test: ") || !strings.Contains(state.Reason, reason) || state.Since.Sub(failed) > within {
			t.Fatalf("after %s it is %s since %s: %s", time.Since(failed), state.State, state.Since.Sub(failed), state.Reason)
		}
		pass(1700 * time.Millisecond)
	}
	if diff := cmp.Diff(before, uids(stored)); diff != "" {
		t.Errorf("what is stored: -before +after:\n%s", diff)
	}

	r.Restore()
	pass(2 * time.Minute) // a request that is not answered goes on waiting
	mustHave(t, s, stored)
}
