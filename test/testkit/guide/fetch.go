package guide

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// tries is how often something is fetched. A registry of packages may be out of reach
// for a moment, which says nothing of the page.
const tries = 3

// fetch does a block of "sh once" in the home of whoever runs the test: there are the
// settings and the caches of the tools that fetch. A try that fails leaves nothing.
func (r *Reader) fetch(title, text string) {
	r.T.Helper()
	before, err := r.entries()
	if err != nil {
		r.T.Fatal(err)
	}
	var failures []string
	for range tries {
		if r.Last, err = r.tryIn(r.FetchEnv, text); err == nil {
			return
		}
		failures = append(failures, fmt.Sprint(err))
		if err := r.removeAllBut(before); err != nil {
			r.T.Fatal(err)
		}
	}
	r.T.Fatalf("%q of the guide, each of %d times:\n%s", title, tries, strings.Join(failures, "\n"))
}

func (r *Reader) entries() (names []string, err error) {
	list, err := os.ReadDir(r.Dir)
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names, err
}

func (r *Reader) removeAllBut(kept []string) error {
	names, err := r.entries()
	for _, name := range names {
		if !slices.Contains(kept, name) {
			err = os.RemoveAll(filepath.Join(r.Dir, name))
		}
		if err != nil {
			break
		}
	}
	return err
}
