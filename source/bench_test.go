package source_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/store"
)

// BenchmarkFullListing takes a listing of 1,000 services with 100,000
// endpoints of which one has changed.
func BenchmarkFullListing(b *testing.B) {
	var objects []source.Object
	for i := range 1000 {
		objects = append(objects, service(fmt.Sprintf("service-%04d", i), fmt.Sprintf("%d.yaml", i), crowd(100)...))
	}
	bench(b, objects, func(i uint32) source.Listing {
		objects[500] = weighed(objects[500], 50, i)
		return source.Listing{Objects: objects}
	})
}

// BenchmarkOnePlace takes the reading of a file with one service of 5,000
// endpoints, of which one has changed, beside 100,000 others.
func BenchmarkOnePlace(b *testing.B) {
	objects := []source.Object{service("big", "big.yaml", crowd(5000)...)}
	for i := range 1000 {
		objects = append(objects, service(fmt.Sprintf("service-%04d", i), fmt.Sprintf("%d.yaml", i), crowd(100)...))
	}
	bench(b, objects, func(i uint32) source.Listing {
		return source.Listing{Places: []string{"big.yaml"}, Objects: []source.Object{weighed(objects[0], 50, i)}}
	})
}

func bench(b *testing.B, objects []source.Object, next func(i uint32) source.Listing) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	src := sourceFunc(func(ctx context.Context, sink source.Sink) error {
		defer cancel()
		if err := sink.Replace(ctx, source.Listing{Objects: objects}); err != nil {
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
	if err := source.NewSupervisor("reg", src, store.NewMemory(store.Config{}), source.Config{}).Run(ctx); err != nil {
		b.Fatal(err)
	}
}
