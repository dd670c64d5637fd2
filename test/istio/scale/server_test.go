package scale_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
)

// settings are those of the program that benchmarks differ in.
type settings struct {
	watch     bool
	poll      time.Duration
	quiet     time.Duration
	qps       int
	shardSize int
	namespace string // template of the services'
	source    string // more of the source
	sidecars  bool
}

func defaults() settings {
	return settings{poll: 2 * time.Second, quiet: time.Second, qps: *qps, shardSize: *shardSize, namespace: namespace}
}

const config = `
instance: scale
sources:
- name: legacy
  servicecenter: {addresses: [%s], host: "{{.Service}}.example.com", namespace: %q, poll: %s, watch: %t%s}
outputs:
  istio: {kubeconfig: %s, debounce: {quiet: %s}, qps: %d, shardSize: %d, sidecars: %t}
admin: {listen: "127.0.0.1:0"}
`

// server is the program at work.
type server struct {
	*cluster.Process
	admin   string
	started time.Time
}

// serve runs the program until [server.stop], or the end of the benchmark.
func serve(b testing.TB, c *cluster.Cluster, r *registry, s settings) *server {
	b.Helper()
	dir := b.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := c.API.WriteKubeconfig(kubeconfig, cluster.Admin); err != nil {
		b.Fatal(err)
	}
	return serveFrom(b, dir, fmt.Sprintf(config, r.URL(), s.namespace, s.poll, s.watch, s.source, kubeconfig, s.quiet, s.qps, s.shardSize, s.sidecars))
}

// serveFrom runs the program with a configuration that it writes to a folder.
func serveFrom(b testing.TB, dir, text string) *server {
	b.Helper()
	file := filepath.Join(dir, "isthmus.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	p := &server{Process: cluster.NewProcess(dir, "isthmus", program, "serve", "--config", file), started: time.Now()}
	b.Cleanup(func() {
		p.Kill()
		if b.Failed() {
			b.Log(p.Log())
		}
	})
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	if err := p.Start(ctx, p.serving); err != nil {
		b.Fatal(err)
	}
	return p
}

var servingLine = regexp.MustCompile(`msg=serving .*admin=(\S+)`)

func (p *server) serving(context.Context) error {
	found := servingLine.FindStringSubmatch(p.Log())
	if found == nil {
		return errors.New("it does not say that it serves")
	}
	p.admin = found[1]
	return nil
}

func (p *server) stop(b testing.TB) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	if err := p.Terminate(ctx); err != nil {
		b.Fatal(err)
	}
}

// await waits until the metrics are as wanted, and returns since when the
// program runs.
func (p *server) await(b testing.TB, what string, holds func(probe.Metrics) bool) time.Duration {
	b.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for time.Since(p.started) < patience {
		if holds(p.metrics(b)) {
			return time.Since(p.started)
		}
		select {
		case <-p.Ended():
			b.Fatal("the program has ended")
		case <-again.C:
		}
	}
	b.Fatalf("no %s within %v", what, patience)
	return 0
}

// hasMirrored is that everything in the registry is a record.
func hasMirrored(r *registry) func(probe.Metrics) bool {
	want := len(r.size)
	for _, size := range r.size {
		want += size
	}
	return func(m probe.Metrics) bool { return int(m.Sum("isthmus_source_records")) == want }
}

// hasWritten is that the API server has everything.
func hasWritten(r *registry) func(probe.Metrics) bool {
	return func(m probe.Metrics) bool {
		return int(m.Sum("isthmus_istio_objects")) >= len(r.size) && m.Sum("isthmus_istio_pending") == 0
	}
}

// get returns a page of the admin address, nil if there is none.
func (p *server) get(path string) []byte { return probe.Get("http://" + p.admin + path) }

// shows reports whether the catalog has an address among a service's endpoints.
func (p *server) shows(host, address string) bool {
	return bytes.Contains(p.get("/api/v1/services/"+host), []byte(strconv.Quote(address)))
}

// awaitRecord waits until the catalog has an address, or no longer has it.
func (p *server) awaitRecord(b testing.TB, host, address string, there bool) {
	b.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for began := time.Now(); p.shows(host, address) != there; <-again.C {
		if time.Since(began) > patience {
			b.Errorf("%s of %s is not in the catalog as it should be", address, host)
			return
		}
	}
}

// memory is what a program holds, in MB.
func (p *server) memory(b testing.TB) (resident, live float64) {
	b.Helper()
	const collections = "go_gc_duration_seconds_count"
	live = math.Inf(1)
	until := p.metrics(b).Sum(collections) + 3
	p.await(b, "garbage collection", func(m probe.Metrics) bool {
		live = min(live, m.Sum("go_memstats_heap_alloc_bytes"))
		resident = m.Sum("process_resident_memory_bytes")
		return m.Sum(collections) >= until
	})
	return resident / 1e6, live / 1e6
}

func (p *server) metrics(b testing.TB) probe.Metrics {
	b.Helper()
	return probe.ParseMetrics(b, p.get("/metrics"))
}

// cpu is the processor time that a process has used.
func cpu(b testing.TB, p *cluster.Process) time.Duration {
	b.Helper()
	return probe.CPU(b, p.ID())
}

// load is what the machine has to do, as the kernel averages it over a minute.
func load() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	value, _ := strconv.ParseFloat(first, 64)
	return value
}

// sample is a set of durations.
type sample []time.Duration

// ms returns the smallest value that at least the share q do not exceed.
func (s sample) ms(q float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	at := int(math.Ceil(q*float64(len(sorted)))) - 1
	return float64(sorted[min(max(at, 0), len(sorted)-1)]) / float64(time.Millisecond)
}

// textOf is something in JSON, in which equal things are equal.
func textOf(v any) string {
	text, _ := json.Marshal(v) // it was JSON
	return string(text)
}
