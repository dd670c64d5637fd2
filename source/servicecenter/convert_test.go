package servicecenter_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/servicecenter"
	"github.com/isthmus-mesh/isthmus/test/testkit/golden"
)

// noon is when tests take place.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Every case is a configuration, what a registry has, and what becomes of it.
func TestConversion(t *testing.T) {
	t.Parallel()
	golden.Run(t, func(t *testing.T, story *txtar.Archive) *txtar.Archive {
		t.Helper()
		var config servicecenter.Config
		var services []servicecenter.Registered
		for _, f := range story.Files {
			var err error
			switch f.Name {
			case "config.json":
				err = json.Unmarshal(f.Data, &config)
			case "registry.json":
				err = json.Unmarshal(f.Data, &services)
			}
			if err != nil {
				t.Fatal(f.Name, err)
			}
		}
		listing, err := servicecenter.Convert(config, services, noon)
		if err != nil {
			t.Fatal(err)
		}
		return golden.With(story, "records", dump(listing))
	})
}

// dump writes a listing for people to read.
func dump(l model.Listing) string {
	var b strings.Builder
	for _, o := range l.Objects {
		dumpRecord(&b, o.Record)
		for _, rec := range o.Owned {
			dumpRecord(&b, rec)
		}
	}
	for _, r := range l.Rejected {
		fmt.Fprintf(&b, "rejected %s %s: %s\n", r.Object, r.Field, r.Reason)
	}
	for _, kind := range slices.Sorted(mapKeys(l.Ignored)) {
		fmt.Fprintf(&b, "ignored %d: %s\n", l.Ignored[kind], kind)
	}
	return b.String()
}

func dumpRecord(b *strings.Builder, rec model.Record) {
	switch spec := rec.Spec.(type) {
	case model.Service:
		fmt.Fprintf(b, "service %s/%s at %s: %s %s\n", rec.Namespace, rec.Name, rec.Place, spec.Location, spec.Resolution)
		for port := range spec.Ports.All() {
			fmt.Fprintf(b, "  port %d %s %s\n", port.Number, port.Name, port.Protocol)
		}
		for to := range spec.ExportTo.All() {
			fmt.Fprintf(b, "  exported to %s\n", to)
		}
		for key, value := range spec.Annotations.All() {
			fmt.Fprintf(b, "  annotation %s: %s\n", key, value)
		}
	case model.Endpoint:
		fmt.Fprintf(b, "  endpoint %s: %s", rec.Name, spec.Address)
		for name, port := range spec.Ports.All() {
			fmt.Fprintf(b, " %s=%d", name, port)
		}
		for _, part := range []string{string(spec.Health), spec.Locality.Region, spec.Locality.Zone} {
			if part != "" {
				b.WriteString(" " + part)
			}
		}
		if spec.Weight > 0 {
			fmt.Fprintf(b, " weight %d", spec.Weight)
		}
		b.WriteString("\n")
		for key, value := range spec.Labels.All() {
			fmt.Fprintf(b, "    %s: %q\n", key, value)
		}
	default:
		text, _ := json.Marshal(spec)
		fmt.Fprintf(b, "%s %s/%s at %s: %s\n", strings.ToLower(string(rec.Kind)), rec.Namespace, rec.Name, rec.Place, text)
	}
}

func mapKeys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}
