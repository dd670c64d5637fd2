package scale_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// size is how much is measured.
type size struct {
	services, instances int
	consumers, uses     int // services that use others, and how many
	changes             int
	pace                time.Duration
	rounds              int // with an istiod and an Envoy of their own
}

func sizeOfFlags() size {
	return size{*services, *instances, *consumers, 5, *changes, *pace, *rounds}
}

// noAddresses leaves out that istiod allots an address to each service, which
// it writes into each object, once: proxies have no use for them here.
const noAddresses = "PILOT_ENABLE_IP_AUTOALLOCATE=false"

// evenRegistry is a registry whose services have about as many instances each.
// Their ports are free ones: Envoy listens on them.
func evenRegistry(tb testing.TB, s size) *registry {
	tb.Helper()
	r := emptyRegistry(tb)
	for _, at := range []*string{&r.rest, &r.grpc} {
		port, err := cluster.FreePort()
		if err != nil {
			tb.Fatal(err)
		}
		*at = port
	}
	for n := range s.services {
		r.add(n, s.instances/s.services)
	}
	return r
}

// mesh is an istiod that nobody else asks, with one Envoy that takes everything
// that it may see.
type mesh struct {
	istiod *cluster.Istiod
	envoy  *proxy.Proxy
}

func startMesh(tb testing.TB, c *cluster.Cluster, config string, s cluster.Sidecar) *mesh {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	istiod, err := c.StartIstiodWith(ctx, config, noAddresses)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(istiod.Kill)
	s.Delta = true // as Istio's proxies do
	envoy, err := c.StartEnvoy(ctx, istiod, s)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(envoy.Stop)
	m := &mesh{istiod, envoy}
	until.NoError(tb, 100*time.Millisecond, "all endpoints in Envoy", func() error {
		const gauge = "cluster_manager.warming_clusters"
		stats, err := envoy.Stats(tb.Context(), "^"+gauge+"$")
		if n, found := stats[gauge]; err == nil && (n > 0 || !found) {
			err = fmt.Errorf("%d clusters are warming", n)
		}
		return err
	})
	return m
}

// mustHaveRejectedNothing asks for more than what may be asked before Envoy's
// memory has been measured.
func (m *mesh) mustHaveRejectedNothing(tb testing.TB) {
	tb.Helper()
	if err := m.envoy.Rejected(tb.Context()); err != nil {
		tb.Error(err)
	}
}

func (m *mesh) stop() {
	m.envoy.Stop()
	m.istiod.Kill()
}

// costs are what the two have used since they were started, and hold.
func (m *mesh) costs(tb testing.TB) figures {
	tb.Helper()
	stats, err := m.envoy.Stats(tb.Context(), "^(cluster_manager.active_clusters|cluster.xds.upstream_cx_total|server.memory_allocated)$")
	if err != nil {
		tb.Fatal(err)
	}
	return figures{
		"envoy-cpu-s":        probe.CPU(tb, m.envoy.ID()).Seconds(),
		"envoy-rss-MB":       probe.Memory(tb, m.envoy.ID(), "VmRSS") / 1e6,
		"envoy-allocated-MB": float64(stats["server.memory_allocated"]) / 1e6,
		"connections":        float64(stats["cluster.xds.upstream_cx_total"]),
		"clusters":           float64(stats["cluster_manager.active_clusters"]),
		"istiod-cpu-s":       cpu(tb, m.istiod.Process).Seconds(),
		"istiod-rss-MB":      resident(tb, m.istiod.Process),
	}
}

// load is what it costs until everything is there.
func (m *mesh) load(tb testing.TB) figures {
	tb.Helper()
	f := m.costs(tb)
	f.push("load-", m.istiod.Pushes(tb))
	return f
}

// push adds what istiod has sent, by type.
func (f figures) push(prefix string, pushes cluster.Pushes) {
	for _, kind := range []string{"cds", "eds", "lds", "rds"} {
		f[prefix+kind] = float64(pushes[kind])
	}
	f[prefix+"for-service"] = float64(pushes["for service"])
}

// has reports whether Envoy has an address among the endpoints of a port.
func (m *mesh) has(tb testing.TB, port, host, address string) bool {
	tb.Helper()
	list, err := m.envoy.Endpoints(tb.Context(), fmt.Sprintf("outbound|%s||%s", port, host))
	if err != nil {
		tb.Error(err)
	}
	return slices.ContainsFunc(list, func(e proxy.Endpoint) bool { return e.Address == address })
}

// follower waits for changes in the order in which they are made. Only the oldest
// that is not in Envoy yet is asked after, or the asking would be measured.
type follower struct {
	made chan *change
	took sample         // how long each took
	open sync.WaitGroup // those that are not there yet
	done chan struct{}
}

// follow starts a follower of at most so many changes.
func (m *mesh) follow(tb testing.TB, port string, most int) *follower {
	tb.Helper()
	f := &follower{made: make(chan *change, most), done: make(chan struct{})}
	go func() {
		defer close(f.done)
		for c := range f.made {
			m.await(tb, port, c)
			f.took = append(f.took, time.Since(c.made))
			f.open.Done()
		}
	}()
	return f
}

func (f *follower) expect(c *change) {
	f.open.Add(1)
	f.made <- c
}

// end waits for the last change, and returns how long each took.
func (f *follower) end() sample {
	close(f.made)
	<-f.done
	return f.took
}

func (m *mesh) await(tb testing.TB, port string, c *change) {
	tb.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for !tb.Failed() && m.has(tb, port, c.host, c.address) != c.there {
		if time.Since(c.made) > patience {
			tb.Errorf("%s of %s is not in Envoy as it should be", c.address, c.host)
		}
		<-again.C
	}
}

// exercise adds single instances to services at a pace, waits until that has come
// about, and then removes them again. Each change is noted as soon as it is made. It
// returns how long it made changes.
func exercise(r *registry, s size, of func(n int) int, note func(*change), come func()) (took time.Duration) {
	half := s.changes / 2
	ids, added := make([]string, half), make([]*change, half)
	began := time.Now()
	for n := range half {
		<-time.After(time.Until(began.Add(time.Duration(n) * s.pace)))
		added[n] = &change{host: host(of(n)), there: true, made: time.Now()}
		ids[n], added[n].address = r.grow(of(n))
		note(added[n])
	}
	took = time.Since(began)
	come()
	began = time.Now()
	for n := range half {
		<-time.After(time.Until(began.Add(time.Duration(n) * s.pace)))
		gone := &change{host: added[n].host, object: added[n].host, address: added[n].address, made: time.Now()}
		r.UnregisterInstance(r.live[of(n)], ids[n])
		note(gone)
	}
	return took + time.Since(began)
}

// mirrored waits until so many objects are there, after at least so many writes,
// and none is left to write: before the first of them it looks the same.
func (p *server) mirrored(tb testing.TB, objects, writes int) time.Duration {
	tb.Helper()
	return p.await(tb, "full write", func(m probe.Metrics) bool {
		return int(m.Sum("isthmus_istio_objects")) == objects && int(m.Sum("isthmus_istio_writes_total")) >= writes &&
			m.Sum("isthmus_istio_pending") == 0
	})
}

// app is the namespace of a service where each app has one.
func app(n int) string { return fmt.Sprintf("app-%d", n%apps) }
