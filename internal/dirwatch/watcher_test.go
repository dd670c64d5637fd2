package dirwatch_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/dirwatch"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

func watch(t *testing.T, dirs ...string) (*dirwatch.Watcher, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	w := dirwatch.New(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(w.Close)
	look(w, dirs...)
	return w, &log
}

func look(w *dirwatch.Watcher, dirs ...string) {
	for _, dir := range dirs {
		w.Add(dir)
	}
	w.Sweep()
}

// awaitOnly waits for an event of a file, and for none of others before it.
func awaitOnly(t *testing.T, w *dirwatch.Watcher, path string) {
	t.Helper()
	limit := time.After(until.Patience)
	for {
		select {
		case event := <-w.Events():
			if filepath.Base(event.Name) == "other" {
				t.Fatalf("%s, where nothing is watched", event)
			}
			if event.Name == path {
				return
			}
		case err := <-w.Lost():
			t.Fatal(err)
		case <-limit:
			t.Fatalf("no event of %s", path)
		}
	}
}

func touch(t *testing.T, path string) string {
	t.Helper()
	must(t, os.WriteFile(path, []byte(time.Now().String()), 0o600))
	return path
}

func TestOnlyFoldersOfTheLastLookAreWatched(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	w, _ := watch(t, a, b)
	awaitOnly(t, w, touch(t, filepath.Join(a, "file")))
	awaitOnly(t, w, touch(t, filepath.Join(b, "file")))
	look(w, b)
	touch(t, filepath.Join(a, "other"))
	awaitOnly(t, w, touch(t, filepath.Join(b, "another")))
	look(w, a, b)
	awaitOnly(t, w, touch(t, filepath.Join(a, "again")))
}

// A watch stays with the folder it was given for, wherever that is moved to.
func TestFolderReplacedByAnotherIsWatched(t *testing.T) {
	parent := t.TempDir()
	dir, next := filepath.Join(parent, "dir"), filepath.Join(parent, "next")
	must(t, os.Mkdir(dir, 0o755))
	must(t, os.Mkdir(next, 0o755))
	w, _ := watch(t, dir)
	must(t, os.Rename(dir, filepath.Join(parent, "old")))
	must(t, os.Rename(next, dir))
	look(w, dir)
	awaitOnly(t, w, touch(t, filepath.Join(dir, "file")))
}

// However many folders cannot be watched, the log says so once, and the others are watched.
func TestFoldersThatCannotBeWatchedAreLoggedOnce(t *testing.T) {
	there := t.TempDir()
	dirs := []string{there}
	for i := range 1000 {
		dirs = append(dirs, filepath.Join(there, "missing"+strconv.Itoa(i)))
	}
	w, log := watch(t, dirs...)
	look(w, dirs...)
	if lines := strings.Count(log.String(), "\n"); lines != 1 {
		t.Errorf("the log has %d lines: %s", lines, log)
	}
	for _, want := range []string{"level=WARN", "count=1000", "missing0 ", "no such file"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q: %s", want, log)
		}
	}
	awaitOnly(t, w, touch(t, filepath.Join(there, "file")))
	must(t, os.Mkdir(dirs[1], 0o755))
	look(w, dirs[1])
	awaitOnly(t, w, touch(t, filepath.Join(dirs[1], "file")))
}
