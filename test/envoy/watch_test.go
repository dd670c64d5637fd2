package envoy_test

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// watcher looks at what Envoys hold all the time, and finds out how long each
// change took. It may be used from any goroutine.
type watcher struct {
	m *mesh

	mu         sync.Mutex
	wanted     map[*proxy.Proxy]map[string]*want // by service
	leaving    map[*proxy.Proxy][]leaver
	active     []time.Duration // how long a change took to be active
	left       []time.Duration // how long an endpoint took to leave
	superseded int             // by another change of the service, before they were active
}

// want is what clusters of some hosts should be.
type want struct {
	what  string
	since time.Time
	hosts map[string]bool
	view  view
	late  bool
	done  chan struct{} // closed once it need not be waited for
}

// release ends waiting, at the latest when it is late: the test has failed then.
func (w *want) release() {
	if !w.late {
		close(w.done)
	}
}

// leaver is an endpoint of a service that should be nowhere.
type leaver struct {
	service  string
	endpoint proxy.Endpoint
	hosts    map[string]bool
	since    time.Time
	counted  bool
	from     *departure
}

// departure is what is done once an endpoint has left all Envoys.
type departure struct {
	envoys int // that it has not left yet
	left   func()
}

// startWatcher watches all Envoys of a mesh until stop is called.
func startWatcher(m *mesh) (w *watcher, stop func()) {
	w = &watcher{m: m, wanted: map[*proxy.Proxy]map[string]*want{}, leaving: map[*proxy.Proxy][]leaver{}}
	ctx, cancel := context.WithCancel(m.Context())
	var done sync.WaitGroup
	for _, p := range m.Proxies {
		w.wanted[p] = map[string]*want{}
		done.Go(func() { w.run(ctx, p) })
	}
	return w, func() {
		cancel()
		done.Wait()
	}
}

// changed is to be called right after a service was written. It returns a
// function that waits until that is active in every Envoy. What left returns for a
// backend that is gone is called once no Envoy has it any more.
func (w *watcher) changed(s *member, what string, hosts map[string]bool, gone []spot, left func(spot) func()) (await func()) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []chan struct{}
	departures := map[spot]*departure{}
	for _, g := range gone {
		departures[g] = &departure{len(w.m.Proxies), left(g)}
	}
	for _, p := range w.m.Proxies {
		if old := w.wanted[p][s.Service]; old != nil {
			w.superseded++
			old.release()
		}
		next := &want{what: s.Service + ": " + what, since: now, hosts: hosts, view: expected(s.objects()), done: make(chan struct{})}
		w.wanted[p][s.Service] = next
		all = append(all, next.done)
		for g, d := range departures {
			w.leaving[p] = append(w.leaving[p], leaver{s.Service, proxy.Endpoint{Address: g.Address, Port: g.Port}, hosts, now, false, d})
		}
	}
	return func() {
		for _, done := range all {
			<-done
		}
	}
}

func (w *watcher) run(ctx context.Context, p *proxy.Proxy) {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			w.giveUp(p)
			return
		case <-again.C:
		}
		if !w.waiting(p) {
			continue
		}
		if got, err := p.Clusters(ctx); err == nil {
			w.look(p, got)
		}
	}
}

func (w *watcher) waiting(p *proxy.Proxy) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.wanted[p])+len(w.leaving[p]) > 0
}

// look compares what an Envoy holds with what it should.
func (w *watcher) look(p *proxy.Proxy, got view) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, next := range w.wanted[p] {
		err := next.view.differs(got.of(next.hosts))
		if err == nil {
			w.active = append(w.active, now.Sub(next.since))
			next.release()
			delete(w.wanted[p], name)
		} else if now.Sub(next.since) > until.Patience && !next.late {
			next.release()
			next.late = true
			w.m.Errorf("%s is not active in %s after %s: %v", next.what, p.Name, until.Patience, err)
		}
	}
	w.leaving[p] = w.stillIn(p, got, now)
}

// stillIn are the endpoints that have not left an Envoy. One that is not there may be on
// its way still, unless the Envoy has the service as it was written last.
func (w *watcher) stillIn(p *proxy.Proxy, got view, now time.Time) (still []leaver) {
	for _, l := range w.leaving[p] {
		has := got.has(l)
		if !has && !l.counted {
			w.left, l.counted = append(w.left, now.Sub(l.since)), true
		}
		if has || w.wanted[p][l.service] != nil {
			still = append(still, l)
			continue
		}
		if l.from.envoys--; l.from.envoys == 0 {
			l.from.left()
		}
	}
	return still
}

// giveUp lets go whoever still waits.
func (w *watcher) giveUp(p *proxy.Proxy) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for next := range maps.Values(w.wanted[p]) {
		next.release()
	}
	w.wanted[p] = map[string]*want{}
}

// has reports whether an endpoint is still in some cluster of its hosts.
func (v view) has(l leaver) bool {
	for _, c := range v.of(l.hosts) {
		for _, e := range c.Endpoints {
			if e.Address == l.endpoint.Address && e.Port == l.endpoint.Port {
				return true
			}
		}
	}
	return false
}
