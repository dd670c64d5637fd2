package config_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// watched is a file in a folder of its own, and word of its changes.
type watched struct {
	t       *testing.T
	dir     string
	file    config.Followed
	changed chan struct{}
}

func watch(t *testing.T, prepare func(w *watched)) *watched {
	t.Helper()
	w := &watched{t: t, dir: t.TempDir(), changed: make(chan struct{}, 100)}
	prepare(w)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.file.Watch(ctx, w.at("isthmus.yaml"), slog.New(slog.DiscardHandler), func() {
			w.load()
			w.changed <- struct{}{}
		})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	w.await("the first look")
	return w
}

// load reads the file, which is no valid configuration.
func (w *watched) load() { _, _ = w.file.Load(w.at("isthmus.yaml")) }

func (w *watched) at(name string) string { return filepath.Join(w.dir, name) }

func (w *watched) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *watched) write(name, text string) {
	w.t.Helper()
	w.must(os.MkdirAll(filepath.Dir(w.at(name)), 0o755))
	w.must(os.WriteFile(w.at(name), []byte(text), 0o600))
}

// overwrite writes a text of the same length into a file. At no time is it shorter, which
// would be one change more.
func (w *watched) overwrite(name, text string) {
	w.t.Helper()
	file, err := os.OpenFile(w.at(name), os.O_WRONLY, 0)
	w.must(err)
	_, err = file.WriteString(text)
	w.must(errors.Join(err, file.Close()))
}

func (w *watched) await(what string) {
	w.t.Helper()
	select {
	case <-w.changed:
	case <-time.After(until.Patience):
		w.t.Fatalf("%s was not noticed", what)
	}
}

func TestWatchNoticesHoweverAFileIsWritten(t *testing.T) {
	t.Parallel()
	w := watch(t, func(w *watched) { w.write("isthmus.yaml", "a") })
	w.overwrite("isthmus.yaml", "b")
	w.await("a file written in place")
	w.write(".isthmus.yaml.swp", "c")
	w.must(os.Rename(w.at(".isthmus.yaml.swp"), w.at("isthmus.yaml")))
	w.await("a file renamed over it")
	w.must(os.Remove(w.at("isthmus.yaml")))
	w.await("its removal")
	w.write("isthmus.yaml", "c")
	w.await("its return, although it says what it said")
}

// To say the same again is no change, nor is another file.
func TestWatchReportsNothingElse(t *testing.T) {
	t.Parallel()
	w := watch(t, func(w *watched) { w.write("isthmus.yaml", "a") })
	replace := func(text string) {
		w.write("draft", text)
		w.must(os.Rename(w.at("draft"), w.at("isthmus.yaml")))
	}
	for range 20 {
		replace("a")
		w.write("other.yaml", "x")
	}
	replace("b")
	w.await("the change")
	if extra := len(w.changed); extra > 0 {
		t.Errorf("it was logged %d times more", extra)
	}
}

// A file may be loaded without an event, and what it says then may be gone before the event.
func TestWatchNoticesAChangeBackAfterALoad(t *testing.T) {
	t.Parallel()
	w := watch(t, func(w *watched) { w.write("isthmus.yaml", "a") })
	w.overwrite("isthmus.yaml", "b")
	w.load()
	w.overwrite("isthmus.yaml", "a")
	w.await("the change back")
}

// Kubernetes mounts a ConfigMap as links, and swaps the one in the middle.
func TestWatchNoticesASwappedConfigMap(t *testing.T) {
	t.Parallel()
	w := watch(t, func(w *watched) {
		w.write("..2026_1/isthmus.yaml", "a")
		w.must(os.Symlink("..2026_1", w.at("..data")))
		w.must(os.Symlink("..data/isthmus.yaml", w.at("isthmus.yaml")))
	})
	for _, next := range []string{"2", "3"} {
		w.write("..2026_"+next+"/isthmus.yaml", next)
		w.must(os.Symlink("..2026_"+next, w.at("..data_tmp")))
		w.must(os.Rename(w.at("..data_tmp"), w.at("..data")))
		w.await("swap " + next)
	}
}

// The file may be a link to one elsewhere, which is edited there.
func TestWatchFollowsALink(t *testing.T) {
	t.Parallel()
	w := watch(t, func(w *watched) {
		w.write("real/config.yaml", "a")
		w.must(os.Symlink("real/config.yaml", w.at("isthmus.yaml")))
	})
	w.write("real/config.yaml", "b")
	w.await("an edit of the target")
}

// Each of several links may be swapped, wherever it stands.
func TestWatchFollowsALinkToALink(t *testing.T) {
	t.Parallel()
	w := watch(t, func(w *watched) {
		w.write("old/config.yaml", "a")
		w.write("new/config.yaml", "b")
		w.must(os.Mkdir(w.at("links"), 0o755))
		w.must(os.Symlink("../old", w.at("links/current")))
		w.must(os.Symlink("links/current/config.yaml", w.at("isthmus.yaml")))
	})
	w.must(os.Symlink("../new", w.at("links/next")))
	w.must(os.Rename(w.at("links/next"), w.at("links/current")))
	w.await("a swap of the link in the middle")
}

// The folder may be gone for a while, as when a volume is mounted anew.
func TestWatchNoticesTheReturnOfTheFolder(t *testing.T) {
	t.Parallel()
	w := watch(t, func(w *watched) {
		w.write("deep/folder/isthmus.yaml", "a")
		w.must(os.Symlink("deep/folder/isthmus.yaml", w.at("isthmus.yaml")))
	})
	w.must(os.Rename(w.at("deep/folder"), w.at("elsewhere")))
	w.await("the end of the folder")
	w.write("deep/folder/isthmus.yaml", "a")
	w.await("its return")
}
