package dirwatch_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/internal/dirwatch"
)

// A folder laid out as Kubernetes mounts a ConfigMap, with a link to it.
func TestResolveNamesEachLinkOnTheWay(t *testing.T) {
	root := realDir(t)
	at := func(name string) string { return filepath.Join(root, name) }
	must(t, os.MkdirAll(at("volume/..2026"), 0o755))
	must(t, os.WriteFile(at("volume/..2026/a.yaml"), nil, 0o600))
	must(t, os.Symlink("..2026", at("volume/..data")))
	must(t, os.Symlink("..data/a.yaml", at("volume/a.yaml")))
	must(t, os.Symlink(at("volume"), at("current")))
	must(t, os.Symlink("round", at("round")))
	must(t, os.Symlink("deeper/x", at("deeper")))
	must(t, os.Symlink("there/x", at("here")))
	must(t, os.Symlink("volume/../here/y", at("there")))
	must(t, os.Symlink("volume/../current/../current/..data", at("twice")))

	for _, test := range []struct {
		name, path, want string
		links            []string
		fails            bool
		missing          bool
	}{
		{"through a volume", "current/a.yaml", "volume/..2026/a.yaml", []string{"current", "volume/a.yaml", "volume/..data"}, false, false},
		{"without links", "volume/..2026/./a.yaml", "volume/..2026/a.yaml", nil, false, false},
		{"to what is missing", "volume/..data/b.yaml", "", []string{"volume/..data", "volume/..2026/b.yaml"}, true, true},
		{"in a circle", "round/a.yaml", "", []string{"round"}, true, false},
		{"ever deeper", "deeper", "", []string{"deeper"}, true, false},
		{"in a circle of two", "here", "", []string{"here", "there"}, true, false},
		{"through one link again and again", "twice/a.yaml", "volume/..2026/a.yaml", []string{"twice", "current", "current", "volume/..data"}, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var links []string
			got, err := dirwatch.Resolve(root+"/"+test.path, func(link string) {
				name, _ := filepath.Rel(root, link)
				links = append(links, name)
			})
			if (err != nil) != test.fails || errors.Is(err, fs.ErrNotExist) != test.missing || !test.fails && got != at(test.want) {
				t.Errorf("leads to %q, %v; want %q", got, err, test.want)
			}
			if !slices.Equal(links, test.links) {
				t.Errorf("by %q, want %q", links, test.links)
			}
		})
	}
}

// realDir is a folder of the test, by a path without links.
func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
