package watch_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	api "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
)

const (
	manyEndpoints = 470_000
	perService    = 20
	manyReaders   = 1_000
	// connections of many readers: a server lets 1,000 streams use one.
	connections = 4
)

// endpointOf is one endpoint of a large mesh, with the attributes that real ones have.
func endpointOf(i int) model.Record {
	service := fmt.Sprintf("orders-%05d", i/perService)
	address := fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)
	return model.Record{
		Ref:   model.Ref{Kind: model.KindEndpoint, Key: model.Key{Source: "legacy", Namespace: "default", Name: service + "/" + address}},
		Owner: model.Ref{Kind: model.KindService, Key: model.Key{Source: "legacy", Namespace: "default", Name: service}},
		Spec: model.Endpoint{
			Address: address, Labels: model.MapOf(map[string]string{"app": service, "version": "v1"}),
			Locality: model.Locality{Region: "eu", Zone: "eu-1"},
		},
	}
}

// fill stores so many endpoints.
func (r *rig) fill(endpoints int) {
	r.Helper()
	var some []model.Record
	for i := range endpoints {
		if some = append(some, endpointOf(i)); len(some) == 10_000 || i == endpoints-1 {
			r.commit(some...)
			some = nil
		}
	}
}

// BenchmarkSnapshot is the first snapshot of many endpoints, for one reader and for 20 at once.
// Time and memory are those of both ends, which share the process.
func BenchmarkSnapshot(b *testing.B) {
	r := newRig(b, setup{sources: []string{"legacy"}})
	r.fill(manyEndpoints)
	for _, readers := range []int{1, 20} {
		b.Run(fmt.Sprint(readers), func(b *testing.B) {
			var took, used, allocated, size sample // of one record
			for b.Loop() {
				records := float64(readers * manyEndpoints)
				runtime.GC()
				cpu, memory, start := probe.CPU(b, os.Getpid()), allocations(), time.Now()
				c, cancel := read(b, r.conn.Target(), readers, readers, &api.Filter{Kind: string(model.KindEndpoint)}, (*rawMessage).whole)
				<-c.all
				took = append(took, float64(time.Since(start).Nanoseconds())/records)
				used = append(used, float64((probe.CPU(b, os.Getpid())-cpu).Nanoseconds())/records)
				allocated = append(allocated, float64(allocations()-memory)/records)
				size = append(size, float64(c.bytes.Load())/records)
				cancel()
			}
			b.ReportMetric(took.median()*float64(readers*manyEndpoints)/1e6, "ms")
			b.ReportMetric(took.median(), "ns/record")
			b.ReportMetric(used.median(), "cpu-ns/record")
			b.ReportMetric(allocated.median(), "allocated-B/record")
			b.ReportMetric(size.median(), "B/record")
		})
	}
}

// BenchmarkChange is one changed endpoint until 1,000 readers have received it, beside a bare
// server that sends the same bytes. They take turns.
func BenchmarkChange(b *testing.B) {
	r := newRig(b, setup{sources: []string{"legacy"}})
	r.fill(perService)
	watching, _ := read(b, r.conn.Target(), manyReaders, connections, nil, (*rawMessage).whole)
	<-watching.all
	n := 0
	change := func() {
		n++
		rec := endpointOf(0)
		rec.Spec = withWeight(rec.Spec, 1+uint32(n%2))
		r.commit(rec)
	}
	change()
	<-watching.all
	server := newBareServer(b, *watching.last.Load())
	bare, _ := read(b, server.address, manyReaders, connections, nil, func(*rawMessage) bool { return true })
	<-bare.all
	var ours, theirs turns
	for b.Loop() {
		ours.take(b, change, watching)
		theirs.take(b, server.send, bare)
	}
	b.ReportMetric(ours.took.median()/1e6, "ms")
	b.ReportMetric(theirs.took.median()/1e6, "bare-ms")
	b.ReportMetric(ours.took.median()/theirs.took.median(), "ratio")
	b.ReportMetric(ours.used.median()/1e3/manyReaders, "cpu-us/reader")
	b.ReportMetric(theirs.used.median()/1e3/manyReaders, "bare-cpu-us/reader")
	b.ReportMetric(ours.used.median()/theirs.used.median(), "cpu-ratio")
	b.ReportMetric(float64(len(*watching.last.Load())), "B/message")
}

func withWeight(spec model.Spec, weight uint32) model.Spec {
	e := spec.(model.Endpoint)
	e.Weight = weight
	return e
}

// turns are measurements of one server, in ns of a change.
type turns struct{ took, used sample }

// take measures some changes. Processor time is of all of them: a server still works a little
// after its last reader has the change.
func (t *turns) take(b *testing.B, change func(), readers *crowd) {
	b.Helper()
	const changes = 10
	cpu := probe.CPU(b, os.Getpid())
	for range changes {
		start := time.Now()
		change()
		<-readers.all
		t.took = append(t.took, float64(time.Since(start).Nanoseconds()))
	}
	t.used = append(t.used, float64((probe.CPU(b, os.Getpid())-cpu).Nanoseconds())/changes)
}

// BenchmarkReaders is the memory of 1,000 readers that have everything, beside those of a bare
// server. Both include the readers' own end.
func BenchmarkReaders(b *testing.B) {
	r := newRig(b, setup{sources: []string{"legacy"}})
	r.fill(1)
	server := newBareServer(b, []byte("idle"))
	var ours, theirs holding
	for b.Loop() {
		ours = holds(b, r.conn.Target(), (*rawMessage).whole)
		theirs = holds(b, server.address, func(*rawMessage) bool { return true })
	}
	ours.report(b, "")
	theirs.report(b, "bare-")
}

// holding is the memory of one reader.
type holding struct{ heap, stack, goroutines float64 }

func holds(b *testing.B, address string, whole func(*rawMessage) bool) holding {
	b.Helper()
	before, routines := memory(), runtime.NumGoroutine()
	c, cancel := read(b, address, manyReaders, connections, nil, whole)
	<-c.all
	after := memory()
	h := holding{
		float64(after.HeapAlloc) - float64(before.HeapAlloc), float64(after.StackInuse) - float64(before.StackInuse),
		float64(runtime.NumGoroutine() - routines),
	}
	cancel()
	return holding{h.heap / manyReaders, h.stack / manyReaders, h.goroutines / manyReaders}
}

func (h holding) report(b *testing.B, whose string) {
	b.Helper()
	b.ReportMetric(h.heap/1e3, whose+"heap-kB/reader")
	b.ReportMetric(h.stack/1e3, whose+"stack-kB/reader")
	b.ReportMetric(h.goroutines, whose+"goroutines/reader")
}

// BenchmarkMerged is the memory of the merged services of many endpoints: of the records, of the
// catalog, and of the merged records that come with the first reader.
func BenchmarkMerged(b *testing.B) {
	r := newRig(b, setup{sources: []string{"legacy"}})
	for b.Loop() {
		empty := memory()
		r.fill(manyEndpoints)
		var services []model.Record
		for i := range manyEndpoints / perService {
			services = append(services, service("legacy", fmt.Sprintf("orders-%05d", i)))
			services[i].Namespace = "default"
			services[i].Spec = model.Service{
				Hosts: model.ListOf(services[i].Name + ".example.com"), Ports: model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}),
				Resolution: model.ResolutionStatic,
			}
		}
		r.commit(services...)
		services = nil
		stored := memory()
		builder := catalog.NewBuilder([]string{"legacy"})
		change := builder.Apply(1, r.listing())
		change.Waited = true
		r.server.Publish(builder.Snapshot(), change)
		change = catalog.Change{}
		merged := memory()
		c, cancel := read(b, r.conn.Target(), 1, 1, &api.Filter{Kind: string(model.KindMergedEndpoint)}, (*rawMessage).whole)
		<-c.all
		cancel()
		served := memory()
		runtime.KeepAlive(builder)
		b.ReportMetric(mib(stored.HeapAlloc)-mib(empty.HeapAlloc), "records-MiB")
		b.ReportMetric(mib(merged.HeapAlloc)-mib(stored.HeapAlloc), "catalog-MiB")
		b.ReportMetric(mib(served.HeapAlloc)-mib(merged.HeapAlloc), "merged-MiB")
	}
}

// listing returns the records of the store as events.
func (r *rig) listing() (events []model.Event) {
	for rec := range r.store.List(model.Filter{}) {
		events = append(events, model.Upsert{Record: rec})
	}
	return events
}

func memory() (stats runtime.MemStats) {
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats
}

func allocations() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

func mib(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

// sample is measurements of one figure.
type sample []float64

func (s sample) median() float64 {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[len(sorted)/2]
}
