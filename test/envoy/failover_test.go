package envoy_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// The backends of [zones] by where they are.
const (
	nearby = "near"
	beyond = "beyond"
)

// zones is a service with some backends in the zone of an Envoy, and others in the next one.
type zones struct {
	*mesh
	port         uint32
	near, beyond []*backend
}

const zonedHost = "zones.example.com"

// newZones starts everything; policy is that of hosts.
func newZones(t *testing.T, delta bool, policy string, near, far int) *zones {
	t.Helper()
	z := &zones{mesh: newMesh(t), port: freePort(t)}
	z.Envoy = "defaults: {" + policy + "}"
	for i := range near {
		z.near = append(z.near, startBackend(t, nearby, fmt.Sprint(nearby, i)))
	}
	for i := range far {
		z.beyond = append(z.beyond, startBackend(t, beyond, fmt.Sprint(beyond, i)))
	}
	z.register(z.near)
	z.Serve("")
	z.connectWith(proxy.Config{Delta: delta, Listeners: true, Flags: []string{"--locality", "eu/a"}})
	await(t, "the near backends to answer", func() error { return answers(t.Context(), z.port, zonedHost, nearby) })
	return z
}

// register has the service be the backends of the next zone, and some near ones.
func (z *zones) register(near []*backend) {
	var all []endpoint
	for locality, backends := range map[string][]*backend{"eu/a": near, "eu/b": z.beyond} {
		for _, b := range backends {
			e := b.endpoint("main")
			e.Locality = locality
			all = append(all, e)
		}
	}
	z.Folder.write(z, "zones", service{Spec: serviceSpec{
		Hosts: []string{zonedHost}, Resolution: "STATIC", Ports: []port{{Number: z.port, Name: "main", Protocol: "HTTP"}}, Endpoints: all,
	}})
}

// answered makes so many calls, and says how many were answered from where. A call
// that fails is an error.
func (z *zones) answered(calls int) (map[string]int, error) {
	by := map[string]int{}
	for range calls {
		from, err := callHost(z.Context(), z.port, zonedHost)
		if err != nil {
			return by, err
		}
		by[from]++
	}
	return by, nil
}

// awaitAll waits until all of many calls are answered from one place.
func (z *zones) awaitAll(from string) {
	z.Helper()
	await(z, "all calls to be answered from "+from, func() error {
		if by, err := z.answered(25); err != nil || by[from] != 25 {
			return fmt.Errorf("they are answered from %v: %w", by, err)
		}
		return nil
	})
}

// callers call a service all the time. No call may fail.
type callers struct {
	z      *zones
	pause  sync.RWMutex // each call holds it, so whoever locks it meets none under way
	beyond atomic.Int64 // answers from the next zone
	stop   func()
}

const callersAtOnce = 4

func (z *zones) startCallers() *callers {
	ctx, cancel := context.WithCancel(z.Context())
	var running sync.WaitGroup
	c := &callers{z: z, stop: func() { cancel(); running.Wait() }}
	for range callersAtOnce {
		running.Go(func() { c.run(ctx) })
	}
	return c
}

func (c *callers) run(ctx context.Context) {
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	for ctx.Err() == nil {
		c.call()
		<-pace.C
	}
}

func (c *callers) call() {
	c.pause.RLock()
	defer c.pause.RUnlock()
	from, err := callHost(c.z.Context(), c.z.port, zonedHost)
	switch {
	case err != nil:
		c.z.Errorf("a call failed: %v", err)
	case from == beyond:
		c.beyond.Add(1)
	}
}

// TestNoCallFailsWhenTheLastNearBackendGoes has all backends near an Envoy go at once, by
// each way in which they may, while calls are made all the time. The default of outlier
// detection never takes them out, for they are more than a tenth of all.
func TestNoCallFailsWhenTheLastNearBackendGoes(t *testing.T) {
	die := func(z *zones) {
		for _, b := range z.near {
			b.Die()
		}
	}
	for name, test := range map[string]struct {
		policy string
		amid   bool // calls are under way at that instant
		go_    func(z *zones)
	}{
		"die":                 {"outlierDetection: {}", false, die},
		"die and are ejected": {"outlierDetection: {consecutive5xxErrors: 1, interval: 1s, maxEjectionPercent: 100}", false, die},
		"leave and die": {"outlierDetection: {}", false, func(z *zones) {
			z.register(nil)
			die(z)
		}},
		"die amid calls": {`outlierDetection: {}, retries: {retryOn: "connect-failure,reset"}`, true, die},
		"try once more":  {"outlierDetection: {}, retries: {attempts: 1}", false, die},
	} {
		t.Run(name, func(t *testing.T) {
			inEachMode(t, func(t *testing.T, delta bool) {
				z := newZones(t, delta, test.policy, 2, 1)
				c := z.startCallers()
				defer c.stop()
				if test.amid {
					z.hold()
				} else {
					c.pause.Lock()
				}
				test.go_(z)
				if !test.amid {
					c.pause.Unlock()
				}
				const enough = 400
				await(t, "the next zone to answer", func() error {
					if n := c.beyond.Load(); n < enough {
						return fmt.Errorf("it has answered %d calls", n)
					}
					return nil
				})
				c.stop()
				z.MustBeSettled()
			})
		})
	}
}

// hold has the near backends answer nothing, and waits until all callers wait for them.
func (z *zones) hold() {
	for _, b := range z.near {
		b.holding.Store(true)
	}
	await(z, "all callers to wait", func() error {
		var held int64
		for _, b := range z.near {
			held += b.held.Load()
		}
		if held < callersAtOnce {
			return fmt.Errorf("%d do", held)
		}
		return nil
	})
}

// TestZoneThatFailsIsLeftUntilItIsBack has all near backends answer 500. Once they are
// ejected, the next zone answers all calls, and once their time is over, they do again.
func TestZoneThatFailsIsLeftUntilItIsBack(t *testing.T) {
	t.Parallel()
	// For as long as they are ejected the next zone is to answer 25 calls, on a machine where one takes most of a second, too.
	z := newZones(t, true, "outlierDetection: {consecutive5xxErrors: 3, interval: 500ms, baseEjectionTime: 20s, maxEjectionPercent: 100}", 2, 1)
	for range 2 {
		z.awaitAll(nearby)
		for _, b := range z.near {
			b.failing.Store(true)
		}
		z.awaitAll(beyond)
		for _, b := range z.near {
			b.failing.Store(false)
		}
	}
	z.awaitAll(nearby)
	z.MustBeSettled()
}

// TestSharesFollowFromWhatWorks has backends fail one after the other. With half of the
// near ones, these keep 1.4 times their share, and the next zone has the rest. No call goes
// to one that is ejected, even when only one of all is left.
func TestSharesFollowFromWhatWorks(t *testing.T) {
	t.Parallel()
	z := newZones(t, true, "outlierDetection: {consecutive5xxErrors: 3, interval: 1s, baseEjectionTime: 300s, maxEjectionPercent: 100}", 2, 3)
	z.awaitAll(nearby)
	z.near[0].failing.Store(true)
	await(t, "the next zone to answer three of ten calls", func() error {
		if by, err := z.answered(300); err != nil || by[beyond] < 60 || by[beyond] > 120 {
			return fmt.Errorf("they are answered from %v: %w", by, err)
		}
		return nil
	})
	for _, b := range []*backend{z.near[1], z.beyond[0], z.beyond[1]} {
		b.failing.Store(true)
	}
	z.awaitAll(beyond)
	before := z.beyond[2].requests.Load()
	if by, err := z.answered(100); err != nil || z.beyond[2].requests.Load()-before != 100 {
		t.Errorf("calls are answered from %v: %v", by, err)
	}
	z.MustBeSettled()
}
