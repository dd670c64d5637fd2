package verdicts

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Documents on which the verdicts once differed, or easily could. Each archive
// holds some and, as its last file, what is said of them. A document that
// begins with "metadata" or "spec" is one of the kind the archive is named after.
func TestVerdictsAgreeOnCorpus(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archive: %v", err)
	}
	for _, name := range archives {
		t.Run(filepath.Base(name), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			testArchive(t, name, archive)
		})
	}
}

func testArchive(t *testing.T, name string, archive *txtar.Archive) {
	t.Helper()
	const verdicts = "verdicts"
	files, want := archive.Files, ""
	if last := len(files) - 1; files[last].Name == verdicts {
		files, want = files[:last], string(files[last].Data)
	}
	var got strings.Builder
	for _, f := range files {
		text := f.Data
		if !strings.HasPrefix(string(text), "apiVersion:") {
			kind := strings.TrimSuffix(filepath.Base(name), ".txtar")
			head := "apiVersion: " + group + "/v1\nkind: " + kind + "\n"
			if !strings.HasPrefix(string(text), "metadata:") {
				head += "metadata: {name: x}\n"
			}
			text = append([]byte(head), text...)
		}
		agree(t, text)
		got.WriteString(f.Name + ": " + or(ours(t, text), "taken") + "\n")
	}
	if *update {
		archive.Files = slices.Concat(files, []txtar.File{{Name: verdicts, Data: []byte(got.String())}})
		if err := os.WriteFile(name, txtar.Format(archive), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("verdicts differ (-want +got), -update rewrites them:\n%s", diff)
	}
}
