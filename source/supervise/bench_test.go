package supervise_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
)

// BenchmarkFullListing takes a listing of 1,000 services with 100,000
// endpoints of which one has changed.
func BenchmarkFullListing(b *testing.B) {
	var objects []model.Object
	for i := range 1000 {
		objects = append(objects, service(fmt.Sprintf("service-%04d", i), fmt.Sprintf("%d.yaml", i), crowd(100)...))
	}
	bench(b, objects, func(i uint32) model.Listing {
		objects[500] = weighed(objects[500], 50, i)
		return model.Listing{Objects: objects}
	})
}

// BenchmarkOnePlace takes the reading of a file with one service of 5,000
// endpoints, of which one has changed, beside 100,000 others.
func BenchmarkOnePlace(b *testing.B) {
	objects := []model.Object{service("big", "big.yaml", crowd(5000)...)}
	for i := range 1000 {
		objects = append(objects, service(fmt.Sprintf("service-%04d", i), fmt.Sprintf("%d.yaml", i), crowd(100)...))
	}
	bench(b, objects, func(i uint32) model.Listing {
		return model.Listing{Places: []string{"big.yaml"}, Objects: []model.Object{weighed(objects[0], 50, i)}}
	})
}

// BenchmarkEverythingDrops takes a listing that lacks all of 1,000 services with
// 100,000 endpoints, which is held. That they are listed again, which ends it, is
// no part of the time.
func BenchmarkEverythingDrops(b *testing.B) {
	var objects []model.Object
	for i := range 1000 {
		objects = append(objects, service(fmt.Sprintf("service-%04d", i), fmt.Sprintf("%d.yaml", i), crowd(100)...))
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	counted := &counting{Memory: store.NewMemory(store.Config{})}
	src := sourceFunc(func(ctx context.Context, sink source.Sink) error {
		defer cancel()
		list := func(objects []model.Object) {
			if err := sink.Replace(ctx, model.Listing{Objects: objects}); err != nil {
				b.Fatal(err)
			}
		}
		list(objects)
		b.ReportAllocs()
		drops, again := 0, 0
		for b.Loop() {
			counted.records = 0
			list(nil)
			drops = counted.records
			b.StopTimer()
			counted.records = 0
			list(objects)
			again = counted.records
			b.StartTimer()
		}
		b.ReportMetric(float64(drops), "records/drop")
		b.ReportMetric(float64(again), "records/return")
		return nil
	})
	if err := supervise.New("reg", src, counted, supervise.Config{}).Run(ctx); err != nil {
		b.Fatal(err)
	}
}

// counting is a store that counts the records it is given.
type counting struct {
	*store.Memory
	records int
}

func (c *counting) Commit(ctx context.Context, commit model.Commit) (uint64, error) {
	c.records += len(commit.Writes)
	return c.Memory.Commit(ctx, commit)
}

func bench(b *testing.B, objects []model.Object, next func(i uint32) model.Listing) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	src := sourceFunc(func(ctx context.Context, sink source.Sink) error {
		defer cancel()
		if err := sink.Replace(ctx, model.Listing{Objects: objects}); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for i := uint32(1); b.Loop(); i++ {
			if err := sink.Replace(ctx, next(i)); err != nil {
				b.Fatal(err)
			}
		}
		return nil
	})
	if err := supervise.New("reg", src, store.NewMemory(store.Config{}), supervise.Config{}).Run(ctx); err != nil {
		b.Fatal(err)
	}
}
