// Package golden holds transcripts to what they were: archives in testdata that
// have what goes in and what comes out. go test PACKAGE -update rewrites what
// comes out; read the difference before you commit it.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite what comes out in testdata")

// Run has every transcript of testdata written anew, side by side, and compares.
func Run(t *testing.T, retell func(t *testing.T, story *txtar.Archive) *txtar.Archive) {
	t.Helper()
	RunFiles(t, "testdata/*.txtar", retell)
}

// RunFiles is [Run] for the transcripts whose paths match a pattern.
func RunFiles(t *testing.T, pattern string, retell func(t *testing.T, story *txtar.Archive) *txtar.Archive) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no transcripts %s: %v", pattern, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			compare(t, path, retell)
		})
	}
}

func compare(t *testing.T, path string, retell func(*testing.T, *txtar.Archive) *txtar.Archive) {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	hold(t, path, string(txtar.Format(archive)), string(txtar.Format(retell(t, archive))))
}

// Text compares a file with the text that it should have.
func Text(t *testing.T, path, got string) {
	t.Helper()
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	hold(t, path, string(want), got)
}

func hold(t *testing.T, path, want, got string) {
	t.Helper()
	if *update && got != want {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s: -want +got; -update rewrites it:\n%s", path, diff)
	}
}

// With returns an archive in which the last file has what came out. It is put
// there if it was not.
func With(in *txtar.Archive, name, outcome string) *txtar.Archive {
	out := &txtar.Archive{Comment: in.Comment}
	for _, f := range in.Files {
		if f.Name != name {
			out.Files = append(out.Files, f)
		}
	}
	out.Files = append(out.Files, txtar.File{Name: name, Data: []byte(outcome)})
	return out
}
