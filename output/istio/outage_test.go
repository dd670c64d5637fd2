package istio

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
	"github.com/isthmus-mesh/isthmus/test/testkit/transcript"
)

// piped starts an API server in the bubble of a test of fake time.
func piped(t *testing.T) *kubeapi.Piped {
	t.Helper()
	api := kubeapi.NewPiped()
	t.Cleanup(api.Close)
	return api
}

// within waits for at most so long, of fake time, and tells how long it took.
func within(t *testing.T, limit time.Duration, what string, check func() error) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		synctest.Wait()
		err := check()
		if err == nil {
			return time.Since(began)
		}
		if time.Since(began) > limit {
			t.Fatalf("waited %s for %s: %v", limit, what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func hasAddresses(api *kubeapi.Server, host, list string) func() error {
	return func() error {
		if got := addresses(api, host); got != list {
			return fmt.Errorf("%q is written, want %q", got, list)
		}
		return nil
	}
}

// elected has the writer stand for election, as several replicas do.
func elected(c *Config, _ *Options) { c.LeaderElection.Enabled = true }

// logged is what was logged.
type logged struct{ transcript.Log }

// of are those that have a part.
func (l *logged) of(part string) (found []string) {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return found
}

// TestWritingBeginsSoonAfterAnOutage takes the API server away for a minute and
// more, with and without a lease, and gives writing five seconds to begin again.
func TestWritingBeginsSoonAfterAnOutage(t *testing.T) {
	t.Parallel()
	for name, adapt := range map[string]func(*Config, *Options){"alone": nil, "elected": elected} {
		for _, outage := range []time.Duration{3 * time.Second, 60 * time.Second, 61300 * time.Millisecond, 10 * time.Minute} {
			t.Run(fmt.Sprint(name, " ", outage), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { goThrough(t, outage, adapt) })
			})
		}
	}
}

func goThrough(t *testing.T, outage time.Duration, adapt func(*Config, *Options)) {
	api, r, log := piped(t), newRegistry("sc"), &logged{}
	r.say(shop.Service("sc", "a.example"), shop.Instance("sc", "a.example", "10.0.0.1"), shop.Service("sc", "b.example"))
	r.listed("sc")
	w := startAt(t, api.Config(), r, func(c *Config, o *Options) {
		o.Log = slog.New(slog.NewTextHandler(log, nil))
		if adapt != nil {
			adapt(c, o)
		}
	})
	within(t, time.Minute, "the first write", hasAddresses(api.Server, "a.example", "10.0.0.1"))
	time.Sleep(time.Minute)
	api.Down(true)
	r.say(shop.Instance("sc", "a.example", "10.0.0.2"), shop.NoService("sc", "b.example"))
	time.Sleep(outage)
	if s := w.Status(); s.Trouble == "" {
		t.Errorf("nothing is said of the outage: %+v", s)
	}
	api.Down(false)
	within(t, 5*time.Second, "writing to begin again", hasAddresses(api.Server, "a.example", "10.0.0.1 10.0.0.2"))
	within(t, 5*time.Second, "the service to go", hasAddresses(api.Server, "b.example", "no object"))
	within(t, 5*time.Second, "the trouble to end", func() error {
		if s := w.Status(); s.Trouble != "" || s.Lease != "" || len(s.Failing) > 0 {
			return fmt.Errorf("trouble %q, lease %q, failing %v", s.Trouble, s.Lease, s.Failing)
		}
		return nil
	})
	if errs, lost := log.of("level=ERROR"), log.of("does not write"); len(errs) > 0 || len(lost) > 1 {
		t.Errorf("logged:\n%s%s", strings.Join(errs, ""), strings.Join(lost, ""))
	}
}

// TestLostLeaseIsLoggedOnceAndShown takes the right to the lease away, and
// nothing else, for ten minutes.
func TestLostLeaseIsLoggedOnceAndShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api, r, log := piped(t), newRegistry("sc"), &logged{}
		r.say(shop.Service("sc", "a.example"), shop.Instance("sc", "a.example", "10.0.0.1"))
		r.listed("sc")
		w := startAt(t, api.Config(), r, func(c *Config, o *Options) {
			elected(c, o)
			o.Log = slog.New(slog.NewTextHandler(log, nil))
		})
		within(t, time.Minute, "the first write", hasAddresses(api.Server, "a.example", "10.0.0.1"))
		api.Reject(func(_, path string) *kubeapi.Rejection {
			if strings.Contains(path, "/leases/") {
				return &kubeapi.Rejection{Code: http.StatusForbidden, Reason: "Forbidden", Message: "leases is forbidden"}
			}
			return nil
		})
		time.Sleep(10 * time.Minute)
		report := opened{w.Writer}.Report()
		if state := report.Writer; state.State != "waiting" || !strings.Contains(state.Reason, "leases is forbidden") || !strings.HasPrefix(state.Age, "9m5") {
			t.Errorf("state %s since %s: %s", state.State, state.Age, state.Reason)
		}
		if got := metric(report.Metrics, "isthmus_istio_up"); got != 0 {
			t.Errorf("up is %v", got)
		}
		if got := append(log.of("level=ERROR"), log.of("level=WARN")...); len(got) != 1 || !strings.Contains(got[0], "leases is forbidden") {
			t.Errorf("logged:\n%s", strings.Join(got, ""))
		}
		api.Reject(nil)
		r.say(shop.Instance("sc", "a.example", "10.0.0.2"))
		within(t, 5*time.Second, "writing to begin again", hasAddresses(api.Server, "a.example", "10.0.0.1 10.0.0.2"))
		if s := w.Status(); s.Lease != "" || len(log.of("again")) != 2 {
			t.Errorf("lease %q; logged %q", s.Lease, log.of("again"))
		}
	})
}

// TestWritingBeginsSoonAfterRejectionsInSeries has every write rejected for a
// while, in each of the ways that pass.
func TestWritingBeginsSoonAfterRejectionsInSeries(t *testing.T) {
	t.Parallel()
	for name, rejection := range map[string]kubeapi.Rejection{
		"conflict":       {Code: http.StatusConflict, Reason: "Conflict", Message: "modified"},
		"overload":       {Code: http.StatusTooManyRequests, Reason: "TooManyRequests", Message: "later"},
		"overload, 4 s":  {Code: http.StatusTooManyRequests, Reason: "TooManyRequests", Message: "later", RetryAfter: 4},
		"unavailable":    {Code: http.StatusServiceUnavailable, Reason: "ServiceUnavailable", Message: "not now"},
		"internal error": {Code: http.StatusInternalServerError, Reason: "InternalError", Message: "failed calling webhook"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { rejectInSeries(t, rejection) })
		})
	}
}

func rejectInSeries(t *testing.T, rejection kubeapi.Rejection) {
	api, r := piped(t), newRegistry("sc")
	r.say(shop.Service("sc", "a.example"), shop.Instance("sc", "a.example", "10.0.0.1"))
	r.listed("sc")
	w := startAt(t, api.Config(), r, nil)
	within(t, time.Minute, "the first write", hasAddresses(api.Server, "a.example", "10.0.0.1"))
	var mu sync.Mutex
	var tries []time.Time
	api.Reject(func(verb, _ string) *kubeapi.Rejection {
		if verb == http.MethodGet {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		tries = append(tries, time.Now())
		return &rejection
	})
	r.say(shop.Instance("sc", "a.example", "10.0.0.2"))
	time.Sleep(5*time.Minute + 1234*time.Millisecond)
	if s := w.Status(); len(s.Failing) != 1 {
		t.Errorf("failing: %v", s.Failing)
	}
	api.Reject(nil)
	within(t, 5*time.Second, "writing to begin again", hasAddresses(api.Server, "a.example", "10.0.0.1 10.0.0.2"))
	mu.Lock()
	defer mu.Unlock()
	for i := range tries[1:] {
		if wait := tries[i+1].Sub(tries[i]); wait < time.Duration(rejection.RetryAfter)*time.Second {
			t.Errorf("tried again after %s, and was asked to wait %d s", wait, rejection.RetryAfter)
		}
	}
	if len(tries) > 5*60 {
		t.Errorf("%d tries in five minutes", len(tries))
	}
}

// TestHangingWriteShowsAsFailing has the API server take a write and not answer.
func TestHangingWriteShowsAsFailing(t *testing.T) {
	t.Parallel()
	for name, adapt := range map[string]func(*Config, *Options){"alone": nil, "elected": elected} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { hang(t, adapt) })
		})
	}
}

func hang(t *testing.T, adapt func(*Config, *Options)) {
	api, r := piped(t), newRegistry("sc")
	r.say(shop.Service("sc", "a.example"), shop.Instance("sc", "a.example", "10.0.0.1"))
	r.listed("sc")
	w := startAt(t, api.Config(), r, adapt)
	within(t, time.Minute, "the first write", hasAddresses(api.Server, "a.example", "10.0.0.1"))
	answer := make(chan struct{})
	api.Before(func(verb, path string) {
		if verb == http.MethodPatch && strings.HasSuffix(path, "/a.example") {
			<-answer
		}
	})
	r.say(shop.Instance("sc", "a.example", "10.0.0.2"))
	within(t, 10*time.Second, "the write to show as failing", func() error {
		report := opened{w.Writer}.Report()
		if metric(report.Metrics, "isthmus_istio_failing") != 1 || len(report.Writer.Failed) != 1 {
			return fmt.Errorf("failed: %v", report.Writer.Failed)
		}
		if f := report.Writer.Failed[0]; f.Object != "ServiceEntry shop/a.example" || !strings.Contains(f.Reason, "no response of the API server") {
			return fmt.Errorf("failed: %+v", f)
		}
		return nil
	})
	time.Sleep(26 * time.Second) // what is given up is still shown, though not at the very instant
	if s := w.Status(); len(s.Failing) != 1 {
		t.Errorf("failing: %v", s.Failing)
	}
	api.Before(nil)
	close(answer)
	within(t, 5*time.Second, "the write", hasAddresses(api.Server, "a.example", "10.0.0.1 10.0.0.2"))
	within(t, 5*time.Second, "the failure to end", func() error {
		if s := w.Status(); len(s.Failing) > 0 {
			return fmt.Errorf("failing: %v", s.Failing)
		}
		return nil
	})
}

// TestUrgentWritesGoFirst has far more to write than the rate allows: labels of
// many services, then a removal and a new endpoint, and it watches the order.
func TestUrgentWritesGoFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api, r := piped(t), newRegistry("sc")
		host := func(i int) string { return fmt.Sprintf("s%03d.example", i) }
		for i := range 200 {
			r.say(shop.Service("sc", host(i)), shop.Instance("sc", host(i), "10.0.0.1"), shop.Instance("sc", host(i), "10.0.0.2"))
		}
		r.listed("sc")
		w := startAt(t, api.Config(), r, func(c *Config, _ *Options) { c.QPS, c.Burst = 2, 200 })
		within(t, time.Minute, "the first writes", hasAddresses(api.Server, host(199), "10.0.0.1 10.0.0.2"))
		before := len(api.Writes())
		for i := range 100 {
			r.say(labelled(host(i), "10.0.0.1"))
		}
		time.Sleep(20 * time.Second)
		r.say(shop.Instance("sc", host(150), "10.0.0.3"))
		time.Sleep(time.Second)
		r.say(shop.NoInstance("sc", host(160), "10.0.0.2"), shop.NoService("sc", host(170)))
		time.Sleep(100 * time.Millisecond)
		report := opened{w.Writer}.Report()
		if n := report.Writer.Throttled; n < 40 || metric(report.Metrics, "isthmus_istio_throttled") != float64(n) ||
			metric(report.Metrics, "isthmus_istio_throttled_oldest_seconds") < 19 ||
			!strings.HasPrefix(report.Writer.ThrottledAge, "2") || !strings.Contains(report.Writer.ThrottledReason, "qps: 2 ") {
			t.Errorf("throttled: %d for %s: %s", n, report.Writer.ThrottledAge, report.Writer.ThrottledReason)
		}
		within(t, 3*time.Second, "the removals and the new endpoint", func() error {
			for i, list := range map[int]string{150: "10.0.0.1 10.0.0.2 10.0.0.3", 160: "10.0.0.1", 170: "no object"} {
				if err := hasAddresses(api.Server, host(i), list)(); err != nil {
					return err
				}
			}
			return nil
		})
		within(t, 2*time.Minute, "the rest", func() error {
			if s := w.Status(); s.Pending > 0 {
				return fmt.Errorf("%d pending", s.Pending)
			}
			return nil
		})
		if n := len(api.Writes()) - before; n != 103 {
			t.Errorf("%d writes, want each once: %v", n, api.Writes()[before:])
		}
	})
}

// TestLabelsAreWrittenHoweverMuchGoes has more removals than the rate allows, all
// the time, and a label that waits.
func TestLabelsAreWrittenHoweverMuchGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api, r := piped(t), newRegistry("sc")
		host := func(i int) string { return fmt.Sprintf("s%03d.example", i) }
		for i := range 300 {
			r.say(shop.Service("sc", host(i)), shop.Instance("sc", host(i), "10.0.0.1"), shop.Instance("sc", host(i), "10.0.0.2"))
		}
		r.listed("sc")
		startAt(t, api.Config(), r, func(c *Config, _ *Options) { c.QPS, c.Burst = 2, 300 })
		within(t, time.Minute, "the first writes", hasAddresses(api.Server, host(299), "10.0.0.1 10.0.0.2"))
		before := len(api.Writes())
		gone := 0
		for range 80 { // removals that wait when the label comes
			r.say(shop.NoInstance("sc", host(gone), "10.0.0.2"))
			gone++
		}
		time.Sleep(time.Second)
		r.say(labelled(host(299), "10.0.0.1"))
		for range 100 { // and those that come, faster than the rate
			time.Sleep(400 * time.Millisecond)
			r.say(shop.NoInstance("sc", host(gone), "10.0.0.2"))
			gone++
		}
		time.Sleep(3 * time.Minute)
		at := slices.IndexFunc(api.Writes()[before:], func(w string) bool { return strings.HasSuffix(w, host(299)) })
		if at < 0 || at > 4*81 {
			t.Errorf("the label was write number %d", at)
		}
		if writes := len(api.Writes()) - before; at > writes-20 {
			t.Errorf("the label was write number %d of %d", at, writes)
		}
	})
}

// labelled is an endpoint of which nothing but a label is new.
func labelled(host, address string) model.Event {
	return shop.InstanceOf("sc", host, shop.Labelled(address, map[string]string{"version": "v2"}))
}
