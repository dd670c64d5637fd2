package envoy_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// stormLeavers are backends that are in the folder no more and go on for a while. How
// fast a change reaches an Envoy depends on what else the machine does, so none stops
// before each Envoy has been seen without it. A rolling update waits likewise. After
// that it goes on for [notice], because an Envoy's workers learn a little later what its
// dump shows.
type stormLeavers struct {
	t    *testing.T
	left sync.WaitGroup
}

// leave stops a backend in its time.
func (l *stormLeavers) leave(proxies []*proxy.Proxy, host string, b *stormBackend) {
	ctx, cancel := context.WithTimeout(l.t.Context(), until.Patience)
	l.left.Go(func() {
		defer cancel()
		for _, p := range proxies {
			if err := absent(ctx, p, host, b); err != nil && l.t.Context().Err() == nil {
				l.t.Errorf("%s: an endpoint of %s does not leave: %v", p.Name, host, err)
			}
		}
		select {
		case <-time.After(notice):
		case <-ctx.Done():
		}
		b.stop()
	})
}

// wait waits until all have stopped.
func (l *stormLeavers) wait() { l.left.Wait() }

// absent waits until an Envoy does not have a backend in any cluster of its host, nor in
// that of a port that is about to go.
func absent(ctx context.Context, p *proxy.Proxy, host string, b *stormBackend) error {
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for {
		endpoints, err := p.EndpointsOf(ctx, host)
		if err == nil && !has(endpoints, b) {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("it has %v (%w)", endpoints, ctx.Err())
		}
	}
}

func has(endpoints []proxy.Endpoint, b *stormBackend) bool {
	for _, e := range endpoints {
		if e.Address == b.endpoint.Address && e.Port == b.port {
			return true
		}
	}
	return false
}
