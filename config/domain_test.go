package config_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// A short name in a manifest is one of the cluster that the configuration names, if it names a
// single one.
func TestShortNamesAreOfTheOnlyCluster(t *testing.T) {
	t.Parallel()
	for others, want := range map[string]string{
		"": "cluster.local", "- {name: east, kubernetes: {domain: east.example}}": "east.example",
		"- {name: east, kubernetes: {domain: east.example}}\n- {name: west, kubernetes: {domain: west.example}}": "cluster.local",
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "isthmus.yaml")
		write := func(name, text string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("split.yml", "apiVersion: split.smi-spec.io/v1alpha4\nkind: TrafficSplit\nmetadata: {name: a, namespace: shop}\n"+
			"spec: {service: reviews, backends: [{service: reviews-v2, weight: 1}]}\n")
		write("isthmus.yaml", "sources:\n- {name: files, file: {path: split.yml}}\n"+others+"\noutputs: {mcp: {listen: '127.0.0.1:1'}}\n")
		c, err := config.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		first := &firstListing{enough: cancel}
		_ = c.Sources[0].Settings.Open(source.Env{Name: "files", Log: slog.New(slog.DiscardHandler)}).Run(ctx, first)
		if len(first.Objects) != 1 {
			t.Fatalf("the source lists %+v", first.Listing)
		}
		if split, _ := first.Objects[0].Record.Spec.(model.Split); split.Host != "reviews.shop.svc."+want {
			t.Errorf("beside %q the host is %s, want one of %s", others, split.Host, want)
		}
	}
}

// firstListing takes one listing.
type firstListing struct {
	model.Listing
	enough func()
}

func (f *firstListing) Replace(_ context.Context, l model.Listing) error {
	f.Listing = l
	f.enough()
	return nil
}

func (f *firstListing) Change(context.Context, model.Change) error { return nil }

func (f *firstListing) Relist() <-chan time.Time { return nil }
