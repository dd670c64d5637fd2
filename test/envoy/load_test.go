package envoy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// workers and pace make the load of one Envoy: workers/pace requests a second.
const workers = 4

// target is a service as clients know it.
type target struct {
	Service     string // what its backends say
	Cluster     string
	Destination string // where the connection was going, for a service without endpoints
	Answering   bool   // every request must be answered
	version     int    // of the above but Destination

	log []string // what was done to it, and when
}

// book is what clients know. It may be used from any goroutine.
type book struct {
	mu      sync.Mutex
	targets []*target
}

// add adds a service that answers.
func (b *book) add(service, cluster string) *target {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := &target{Service: service, Cluster: cluster, Answering: true}
	b.targets = append(b.targets, t)
	return t
}

// change changes what is known of a service.
func (b *book) change(t *target, change func(*target)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := *t
	change(t)
	if t.Cluster != before.Cluster || t.Answering != before.Answering {
		t.version++
	}
}

// note keeps the last things that were done to a service.
func (b *book) note(t *target, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t.log = append(t.log, time.Now().Format("15:04:05.000 ")+text)
	t.log = t.log[max(0, len(t.log)-6):]
}

// pick returns a copy of the n-th service.
func (b *book) pick(n int) (*target, target) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.targets[n%len(b.targets)]
	return t, *t
}

// still reports whether a request to what was picked had to be answered all
// along, and what was done to the service.
func (b *book) still(t *target, picked target) (bool, []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return t.Answering && t.version == picked.version, slices.Clone(t.log)
}

// load is requests through an Envoy that never stop.
type load struct {
	t      testing.TB
	book   *book
	proxy  *proxy.Proxy
	cancel context.CancelFunc
	done   sync.WaitGroup
	client *http.Client
	began  time.Time

	requests, failures, excused atomic.Int64
	slowest                     atomic.Int64 // nanoseconds
}

// startLoad begins requests to all services of a book in turn, until the load
// is stopped, at the latest at the end of the test.
func startLoad(t testing.TB, b *book, p *proxy.Proxy, pace time.Duration) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{
		t: t, book: b, proxy: p, cancel: cancel, began: time.Now(),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: workers}, Timeout: until.Patience},
	}
	for n := range workers {
		l.done.Go(func() { l.run(ctx, n, pace) })
	}
	t.Cleanup(l.stop)
	return l
}

func (l *load) stop() {
	l.cancel()
	l.done.Wait()
	l.client.CloseIdleConnections()
}

func (l *load) run(ctx context.Context, n int, pace time.Duration) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for ; ctx.Err() == nil; n++ {
		if t, picked := l.book.pick(n); picked.Answering {
			l.request(ctx, t, picked)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// request makes one request and reports its failure, unless the service went
// or moved meanwhile.
func (l *load) request(ctx context.Context, t *target, picked target) {
	began := time.Now()
	err := l.ask(ctx, picked)
	if ctx.Err() != nil {
		return
	}
	l.requests.Add(1)
	if took := int64(time.Since(began)); took > l.slowest.Load() {
		l.slowest.Store(took) // near enough when two are slow at once
	}
	if err == nil {
		return
	}
	due, log := l.book.still(t, picked)
	if !due {
		l.excused.Add(1)
		return
	}
	if n := l.failures.Add(1); n <= 10 {
		l.t.Errorf("%s %s: a request to %s begun at %s failed: %v\nwhat was done to it: %q", time.Now().Format("15:04:05.000"),
			l.proxy.Name, picked.Cluster, began.Format("15:04:05.000"), err, log)
	}
}

func (l *load) ask(ctx context.Context, picked target) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.proxy.Address+"/", http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("x-cluster", picked.Cluster)
	if picked.Destination != "" {
		request.Header.Set("x-destination", picked.Destination)
	}
	answer, err := l.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	switch by := answer.Header.Get(answeredBy); {
	case err != nil:
		return err
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %.300s", answer.Status, body)
	case by != picked.Service:
		return fmt.Errorf("it was answered by %s, not by %s", by, picked.Service)
	}
	return nil
}

// MustNotHaveFailed stops the load. No request may have failed, and there must
// have been some.
func (l *load) MustNotHaveFailed() {
	l.t.Helper()
	l.stop()
	if n := l.failures.Load(); n > 0 {
		l.t.Errorf("%s: %d of %d requests failed", l.proxy.Name, n, l.requests.Load())
	}
	if l.requests.Load() == 0 {
		l.t.Errorf("%s: there were no requests", l.proxy.Name)
	}
	figures.add(l.t, "%s: %d requests in %s, %d failed, %d of services under removal not counted; slowest %s", l.proxy.Name,
		l.requests.Load(), time.Since(l.began).Round(time.Second), l.failures.Load(), l.excused.Load(), time.Duration(l.slowest.Load()).Round(time.Millisecond))
}
