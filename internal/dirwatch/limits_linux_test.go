package dirwatch_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/isthmus-mesh/isthmus/internal/dirwatch"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// A process that may open no more files goes on without watches.
func TestNoWatcherIsLoggedWithARemedy(t *testing.T) {
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	none := limit
	none.Cur = 0
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	var log bytes.Buffer
	w := dirwatch.New(slog.New(slog.NewTextHandler(&log, nil)))
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	look(w, t.TempDir())
	if w.Events() != nil || w.Lost() != nil {
		t.Error("it watches all the same")
	}
	w.Close()
	if !strings.Contains(log.String(), "ulimit -n") || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("the log says: %s", &log)
	}
}

// When more happens than the system remembers, the watcher says so.
func TestLostEventsAreNotified(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	must(t, err)
	most, err := strconv.Atoi(strings.TrimSpace(string(text)))
	must(t, err)
	dir := t.TempDir()
	a, b := touch(t, filepath.Join(dir, "a")), touch(t, filepath.Join(dir, "b"))
	w, _ := watch(t, dir)
	for range most/2 + 5000 { // by turns, as equal events are united
		must(t, os.Chmod(a, 0o600))
		must(t, os.Chmod(b, 0o600))
	}
	limit := time.After(until.Patience)
	for {
		select {
		case <-w.Events():
		case err := <-w.Lost():
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				t.Error(err)
			}
			return
		case <-limit:
			t.Fatal("nobody was notified")
		}
	}
}
