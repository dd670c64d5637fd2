package cli_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// A watched table is printed anew when it changes, outlives an instance that does not
// answer for a while, and ends by Ctrl-C.
func TestWatchFollowsUntilInterrupted(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	enough := make(chan struct{})
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch asked.Add(1) {
		case 1, 2:
			fmt.Fprint(w, `[{"name": "files", "kind": "file", "state": "listing"}]`)
		case 3:
			http.Error(w, "shutting down", http.StatusServiceUnavailable)
		case 5:
			close(enough)
			fallthrough
		default:
			fmt.Fprint(w, `[{"name": "files", "kind": "file", "state": "live"}]`)
		}
	}))
	defer admin.Close()
	c := exec.Command("isthmus", "sources", "--watch", "--admin", strings.TrimPrefix(admin.URL, "http://")) //nolint:noctx // it ends by a signal
	var out bytes.Buffer
	c.Stdout = &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	<-enough
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if got := c.ProcessState.ExitCode(); got != 128+int(syscall.SIGINT) {
		t.Errorf("exit status %d", got)
	}
	for text, want := range map[string]int{"NAME ": 2, "  listing  ": 1, "shutting down\n": 1, "  live  ": 1, "\x1b": 0} {
		if got := strings.Count(out.String(), text); got != want {
			t.Errorf("%q is printed %d times, want %d:\n%s", text, got, want, out.String())
		}
	}
}
