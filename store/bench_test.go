package store_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/store"
)

const scale = 500_000

// touch returns a commit that changes one record.
func touch(m *store.Memory, i, n int) model.Commit {
	stored, _ := m.Get(endpoint(i).Ref)
	e := stored.Spec.(model.Endpoint)
	e.Weight = uint32(n)
	stored.Spec = e
	return model.Commit{Writes: []model.Write{{Record: stored}}}
}

func BenchmarkCommitOneOf500k(b *testing.B) {
	m := store.NewMemory(store.Config{})
	mustCommit(b, m, endpoints(scale))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		mustCommit(b, m, touch(m, n*7919%scale, n))
	}
}

// One step is a commit, and every watcher having it in hand.
func BenchmarkCommitToWatchers(b *testing.B) {
	for _, watchers := range []int{1, 100} {
		b.Run(fmt.Sprint(watchers), func(b *testing.B) {
			m := store.NewMemory(store.Config{})
			mustCommit(b, m, endpoints(1000))
			seen, stop := readers(b, m, watchers)
			defer stop()
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n++
				mustCommit(b, m, touch(m, n%1000, n))
				for range watchers {
					<-seen
				}
			}
		})
	}
}

// readers starts watchers that each send once for every commit.
func readers(b *testing.B, m *store.Memory, n int) (seen chan struct{}, stop func()) {
	b.Helper()
	seen = make(chan struct{}, n)
	ctx, cancel := context.WithCancel(b.Context())
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			for _, err := range m.Watch(ctx, model.Filter{}) {
				if err == nil {
					seen <- struct{}{}
				}
			}
		})
	}
	for range n { // the snapshots, of one batch each
		<-seen
	}
	return seen, func() {
		cancel()
		group.Wait()
	}
}

func BenchmarkListOneOwnersEndpoints(b *testing.B) {
	m := store.NewMemory(store.Config{})
	mustCommit(b, m, endpoints(scale))
	f := model.Filter{Kind: model.KindEndpoint, Source: "files", Namespace: "default", Prefix: "web-12345/"}
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for range m.List(f) {
			n++
		}
		if n != 20 {
			b.Fatalf("listed %d endpoints", n)
		}
	}
}

// What the bound in bytes costs a commit, for each of its events.
func BenchmarkSizeOfAnEndpoint(b *testing.B) {
	r := endpoint(7)
	b.ReportAllocs()
	size := 0
	for b.Loop() {
		size = r.Size()
	}
	b.ReportMetric(float64(size), "B/record")
}
