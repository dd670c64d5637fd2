package file_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/file"
	"github.com/isthmus-mesh/isthmus/test/testkit/listing"
)

const endpoints = 4000

func BenchmarkParse(b *testing.B) {
	var yaml, json bytes.Buffer
	yaml.WriteString("apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata:\n  name: large\nspec:\n" +
		"  hosts:\n  - large.example\n  ports:\n  - number: 80\n    name: http\n    protocol: HTTP\n" +
		"  resolution: STATIC\n  endpoints:\n")
	json.WriteString(`{"apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry", "metadata": {"name": "large"},
"spec": {"hosts": ["large.example"], "ports": [{"number": 80, "name": "http", "protocol": "HTTP"}],
"resolution": "STATIC", "endpoints": [`)
	for i := range endpoints {
		address := fmt.Sprintf("10.0.%d.%d", i/256, i%256)
		fmt.Fprintf(&yaml, "  - address: %s\n    ports:\n      http: 8080\n    labels:\n      app: large\n      zone: z%d\n"+
			"    locality: eu/eu-1/a\n    weight: 3\n", address, i%3)
		if i > 0 {
			json.WriteString(",")
		}
		fmt.Fprintf(&json, "\n"+`{"address": %q, "ports": {"http": 8080}, "labels": {"app": "large", "zone": "z%d"}, `+
			`"locality": "eu/eu-1/a", "weight": 3}`, address, i%3)
	}
	json.WriteString("]}}\n")
	for name, text := range map[string][]byte{"yaml": yaml.Bytes(), "json": json.Bytes()} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if l := file.Parse("x.yaml", text); len(l.Objects) != 1 || len(l.Objects[0].Owned) != endpoints {
					b.Fatal(listing.Dump(l))
				}
			}
		})
	}
}

// A small file is what most registries are made of: of many of them, this is what
// each costs.
func BenchmarkParseSmall(b *testing.B) {
	text := []byte(strings.Replace(entry("shop", "shop.example"), "metadata: {name: shop}",
		"metadata:\n  name: shop\n  namespace: prod\n  labels: {app: shop, example.com/tier: front}\n  annotations: {example.com/owner: team}", 1))
	b.ReportAllocs()
	for b.Loop() {
		if l := file.Parse("x.yaml", text); len(l.Objects) != 1 {
			b.Fatal(listing.Dump(l))
		}
	}
}

// One file of a thousand changes; what is measured includes the 1 ms for which
// the source waits whether more does.
func BenchmarkOneFileOfThousand(b *testing.B) {
	dir := b.TempDir()
	for i := range 1000 {
		write(b, dir, fmt.Sprintf("%d/%d.yaml", i%10, i), entry(fmt.Sprintf("s%d", i), "a.example"))
	}
	ctx, cancel := context.WithCancel(b.Context())
	listings, done := make(chan model.Listing), make(chan struct{})
	go func() {
		defer close(done)
		src := file.New(file.Config{Path: dir}.Pace(time.Millisecond, 0, 0, time.Hour), slog.New(slog.DiscardHandler))
		_ = src.Run(ctx, sink{listings, nil})
	}()
	<-listings
	i := 0
	for b.Loop() {
		i++
		write(b, dir, "5/.tmp", entry("s5", fmt.Sprintf("a%d.example", i)))
		rename(b, dir, "5/.tmp", "5/5.yaml")
		if l := <-listings; len(l.Places) != 1 || len(l.Objects) != 1 {
			b.Fatal(listing.Dump(l))
		}
	}
	cancel()
	<-done
}

// A folder of many files is looked through without end, and the longest time is measured
// that a change waits for its listing meanwhile. It includes the 1 ms for which the
// source waits whether more changes.
func BenchmarkChangeDuringRescan(b *testing.B) {
	dir := b.TempDir()
	for i := range 10_000 {
		write(b, dir, fmt.Sprintf("%d.yaml", i), entry(fmt.Sprintf("s%d", i), "a.example"))
	}
	ctx, cancel := context.WithCancel(b.Context())
	listings, done := make(chan model.Listing), make(chan struct{})
	go func() {
		defer close(done)
		src := file.New(file.Config{Path: dir}.Pace(time.Millisecond, 0, 0, 10*time.Millisecond), slog.New(slog.DiscardHandler))
		_ = src.Run(ctx, sink{listings, nil})
	}()
	<-listings
	longest, i := time.Duration(0), 0
	for b.Loop() {
		i++
		write(b, dir, ".tmp", entry("s5", fmt.Sprintf("a%d.example", i)))
		rename(b, dir, ".tmp", "5.yaml")
		written := time.Now()
		if l := <-listings; len(l.Objects) == 0 {
			b.Fatal(listing.Dump(l))
		}
		longest = max(longest, time.Since(written))
	}
	b.ReportMetric(float64(longest)/float64(time.Millisecond), "longest-ms")
	cancel()
	for {
		select {
		case <-listings:
		case <-done:
			return
		}
	}
}
