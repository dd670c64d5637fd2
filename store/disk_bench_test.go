package store

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

const (
	manyEndpoints = 470_000
	perService    = 20
)

// endpointOf is one endpoint of a large mesh, with what real ones carry.
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

func fillMany(b *testing.B, m *Memory) {
	b.Helper()
	var c model.Commit
	for i := range manyEndpoints {
		if c.Writes = append(c.Writes, model.Write{Record: endpointOf(i)}); len(c.Writes) == 1000 || i == manyEndpoints-1 {
			if _, err := m.Commit(b.Context(), c); err != nil {
				b.Fatal(err)
			}
			c.Writes = nil
		}
	}
}

func touchOne(b *testing.B, m *Memory, n int) {
	b.Helper()
	r := endpointOf(n * 7919 % manyEndpoints)
	stored, _ := m.Get(r.Ref)
	e := stored.Spec.(model.Endpoint)
	e.Weight++
	stored.Spec = e
	if _, err := m.Commit(b.Context(), model.Commit{Writes: []model.Write{{Record: stored}}}); err != nil {
		b.Fatal(err)
	}
}

func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// saveMany leaves a folder with a snapshot of many endpoints.
func saveMany(b *testing.B, dir string) {
	b.Helper()
	d, err := OpenDisk(DiskConfig{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	fillMany(b, d.Store())
	ended, cancel := context.WithCancel(b.Context())
	cancel()
	if err := d.Run(ended); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkSave470k(b *testing.B) {
	d, err := OpenDisk(DiskConfig{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	fillMany(b, d.Store())
	b.ReportAllocs()
	number, size := 1, int64(0)
	for b.Loop() {
		number++
		c := compact(b.Context(), &d.archive, d.replica, number)
		if c.err != nil {
			b.Fatal(c.err)
		}
		size = c.size
	}
	b.SetBytes(size)
	b.ReportMetric(float64(size)/manyEndpoints, "B/endpoint")
}

func BenchmarkLoad470k(b *testing.B) {
	dir := b.TempDir()
	saveMany(b, dir)
	b.ReportAllocs()
	before, after := heap(), uint64(0)
	for b.Loop() {
		d, err := OpenDisk(DiskConfig{Dir: dir})
		if err != nil || d.Restored().Records != manyEndpoints {
			b.Fatalf("restored %+v, error %v", d.Restored(), err)
		}
		b.StopTimer()
		after = heap()
		d.Close()
		runtime.KeepAlive(d)
		b.SetBytes(d.Restored().Bytes)
		b.StartTimer()
	}
	b.ReportMetric(float64(after-before)/manyEndpoints, "heap-B/endpoint")
}

// What saving costs a commit, and how late it is under steady commits with
// many endpoints stored, new snapshots included.
func BenchmarkCommitOneOf470k(b *testing.B) {
	for _, saved := range []bool{false, true} {
		b.Run(fmt.Sprintf("saved=%t", saved), func(b *testing.B) {
			d, err := OpenDisk(DiskConfig{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			fillMany(b, d.Store())
			if saved {
				ctx, cancel := context.WithCancel(b.Context())
				ended := make(chan error)
				go func() { ended <- d.Run(ctx) }()
				defer func() { cancel(); <-ended }()
			}
			n := 0
			for b.Loop() {
				n++
				touchOne(b, d.Store(), n)
			}
		})
	}
}

func BenchmarkLagAt470k(b *testing.B) {
	d, err := OpenDisk(DiskConfig{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	fillMany(b, d.Store())
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error)
	d.tuning.minJournal = 1 << 20
	go func() { ended <- d.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for d.Saving().Saved.Revision < d.Store().Revision() {
		<-tick.C
	}
	worst, n := time.Duration(0), 0
	for b.Loop() {
		n++
		touchOne(b, d.Store(), n)
		worst = max(worst, d.Saving().Lag(time.Now()))
		<-tick.C
	}
	b.ReportMetric(worst.Seconds()*1000, "worst-ms")
}
