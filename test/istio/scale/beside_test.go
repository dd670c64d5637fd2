package scale_test

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
)

// BenchmarkBeside changes one endpoint after the other, and measures how long it takes
// until the last of many Envoys calls the new one. The Envoys are behind Isthmus and
// behind istiod in turns, in one run and with the same objects.
func BenchmarkBeside(b *testing.B) {
	for name, row := range measureBeside(b, sizeOfFlags(), *envoys) {
		b.Run(name, row.report)
	}
}

// crowd is what is measured.
type crowd struct {
	size
	planes  []plane
	entries []*unstructured.Unstructured // by service, as the last change left them
	port    int64                        // of the services
	fresh   int                          // addresses that were used
}

func measureBeside(tb testing.TB, s size, envoys int) map[string]figures {
	tb.Helper()
	c, target := startCluster(tb), startBackend(tb)
	m := &crowd{size: s, planes: planes(tb, c), port: freePort(tb), fresh: s.instances}
	for n := range s.services {
		m.entries = append(m.entries, entry(n, m.port, target, s.instances/s.services))
	}
	writeAll(tb, m.planes, cluster.ServiceEntries, m.entries)
	all, rounds := map[string]*trials{}, map[string][]figures{}
	for range s.rounds {
		for _, p := range m.planes {
			if all[p.Name()] == nil {
				all[p.Name()] = &trials{}
			}
			f := m.round(tb, c, p, envoys, all[p.Name()])
			fmt.Fprintln(os.Stderr, p.Name(), f)
			rounds[p.Name()] = append(rounds[p.Name()], f)
		}
	}
	rows := map[string]figures{}
	for name, t := range all {
		rows[name] = medianOf(rounds[name])
		rows[name].add(t)
	}
	ratio := figures{}
	for unit, value := range rows["istiod"] {
		if own := rows["isthmus"][unit]; own > 0 {
			ratio[unit] = value / own
		}
	}
	rows["istiod/isthmus"] = ratio
	return rows
}

// trials are the changes of all rounds.
type trials struct{ first, last, written sample }

func (f figures) add(t *trials) {
	f["first-ms"], f["last-ms"], f["last-p99-ms"] = t.first.ms(0.5), t.last.ms(0.5), t.last.ms(0.99)
	f["fastest-ms"], f["slowest-ms"] = t.last.ms(0), t.last.ms(1)
	f["written-ms"], f["changes"] = t.written.ms(0.5), float64(len(t.last))
}

// round has Envoys behind a control plane follow changes.
func (m *crowd) round(tb testing.TB, c *cluster.Cluster, p plane, envoys int, all *trials) figures {
	tb.Helper()
	own, _ := p.CPU(tb)
	callers := m.start(tb, c, p, envoys)
	defer stopAll(callers)
	changing := m.entries[:min(m.changes, len(m.entries))]
	for n, entry := range changing {
		for _, caller := range callers {
			caller.await(tb, m.cluster(n), firstOf(entry)["address"].(string))
		}
	}
	started, origin := p.CPU(tb)
	this := &trials{}
	for k := range m.changes {
		<-time.After(m.pace)
		m.change(tb, p, callers, k%len(changing), this)
	}
	after, originAfter := p.CPU(tb)
	all.first, all.last, all.written = append(all.first, this.first...), append(all.last, this.last...), append(all.written, this.written...)
	f := figures{
		"start-cpu-ms/envoy":   (started - own).Seconds() * 1000 / float64(envoys),
		"cpu-ms/change":        (after - started).Seconds() * 1000 / float64(m.changes),
		"origin-cpu-ms/change": (originAfter - origin).Seconds() * 1000 / float64(m.changes),
		"envoy-rss-MB":         probe.Memory(tb, callers[0].ID(), "VmRSS") / 1e6,
	}
	f.add(this)
	for _, caller := range callers {
		if err := caller.Rejected(tb.Context()); err != nil {
			tb.Error(err)
		}
	}
	writeAll(tb, m.planes, cluster.ServiceEntries, changing) // the other one has not had these
	return f
}

func (m *crowd) cluster(n int) string { return fmt.Sprintf("outbound|%d||%s", m.port, host(n)) }

// firstOf is the endpoint of an entry that calls go to.
func firstOf(entry *unstructured.Unstructured) map[string]any {
	return entry.Object["spec"].(map[string]any)["endpoints"].([]any)[0].(map[string]any)
}

// start starts Envoys with the same bootstrap, but for the address in it: clusters and
// endpoints come over ADS, and the listener that calls come to is in the bootstrap.
func (m *crowd) start(tb testing.TB, c *cluster.Cluster, p plane, envoys int) (callers []*caller) {
	tb.Helper()
	for n := range envoys {
		envoy, err := c.StartEnvoyOf(tb.Context(), p.XDS(), cluster.Sidecar{
			Workload: fmt.Sprintf("web-%d", n), Namespace: namespace, Delta: true, ClustersOnly: true,
		})
		if err != nil {
			tb.Fatal(err)
		}
		callers = append(callers, newCaller(envoy))
	}
	return callers
}

func stopAll(callers []*caller) {
	for _, caller := range callers {
		caller.stop()
	}
}

// change gives a service another first endpoint, and waits until each Envoy calls it.
func (m *crowd) change(tb testing.TB, p plane, callers []*caller, n int, into *trials) {
	tb.Helper()
	m.fresh++
	address := loopback(m.fresh)
	m.entries[n] = m.entries[n].DeepCopy()
	firstOf(m.entries[n])["address"] = address
	made, took := time.Now(), make(sample, len(callers))
	var calling sync.WaitGroup
	for k, caller := range callers {
		calling.Go(func() {
			caller.await(tb, m.cluster(n), address)
			took[k] = time.Since(made)
		})
	}
	p.Move(tb, m.entries[n])
	into.written = append(into.written, time.Since(made))
	calling.Wait()
	into.first, into.last = append(into.first, slices.Min(took)), append(into.last, slices.Max(took))
}
