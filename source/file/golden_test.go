package file_test

import (
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/isthmus-mesh/isthmus/source/file"
	"github.com/isthmus-mesh/isthmus/test/testkit/golden"
	"github.com/isthmus-mesh/isthmus/test/testkit/listing"
)

// Every case is a registry and, as its last file, the listing it gives.
func TestListing(t *testing.T) {
	t.Parallel()
	golden.Run(t, func(t *testing.T, registry *txtar.Archive) *txtar.Archive {
		t.Helper()
		const outcome = "listing"
		dir := t.TempDir()
		for _, f := range registry.Files {
			if f.Name != outcome {
				write(t, dir, f.Name, string(f.Data))
			}
		}
		return golden.With(registry, outcome, listing.Dump(launch(t, dir, file.Config{Path: dir}).next()))
	})
}
