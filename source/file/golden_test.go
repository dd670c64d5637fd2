package file_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/isthmus-mesh/isthmus/source/file"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Every case is a registry and, as its last file, the listing it gives.
func TestListing(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, name := range cases {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			testListing(t, name)
		})
	}
}

func testListing(t *testing.T, name string) {
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	const listing = "listing"
	files, want := archive.Files, ""
	if last := len(files) - 1; files[last].Name == listing {
		files, want = files[:last], string(files[last].Data)
	}
	for _, f := range files {
		write(t, dir, f.Name, string(f.Data))
	}
	r := launch(t, dir, file.Config{Path: dir})
	got := dump(r.next())
	if *update {
		archive.Files = append(files, txtar.File{Name: listing, Data: []byte(got)}) //nolint:gocritic // the rest is replaced
		if err := os.WriteFile(name, txtar.Format(archive), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listing differs (-want +got), -update rewrites it:\n%s", diff)
	}
}
