package simulation

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// serve runs the program on a file of ServiceEntries until the test ends, and returns
// where it serves xDS. It has read the file by then, and found nothing wrong with it.
func serve(t testing.TB, dir, entries, outbound string) (address string) {
	t.Helper()
	folder := filepath.Join(dir, "entries")
	write(t, filepath.Join(folder, "entries.yaml"), entries)
	config := filepath.Join(dir, "isthmus.yaml")
	write(t, config, fmt.Sprintf(`
sources:
- {name: files, file: {path: %q}}
outputs:
  xds: {listen: "127.0.0.1:0", envoy: {outbound: %s}}
admin: {listen: "127.0.0.1:0"}
log: {format: text}
`, folder, outbound))
	command := exec.Command(program, "serve", "--config", config)
	command.SysProcAttr = leash()
	log, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("starting isthmus: %v", err)
	}
	lines := make(chan string)
	done := make(chan struct{})
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(log); scanner.Scan(); {
			select {
			case lines <- scanner.Text():
			case <-done: // nobody reads on; Isthmus must not wait for it
			}
		}
	}()
	t.Cleanup(func() {
		close(done)
		_ = command.Process.Kill() // it may be gone
		for range lines {          //nolint:revive // until the end of the log
		}
		_ = command.Wait()
	})
	return awaitServing(t, lines)
}

// awaitServing reads a log until the file has been read.
func awaitServing(t testing.TB, lines <-chan string) (address string) {
	t.Helper()
	late := time.After(patience)
	for live := false; !live || address == ""; {
		select {
		case line, ok := <-lines:
			switch {
			case !ok:
				t.Fatal("isthmus has ended")
			case !strings.Contains(line, "level=INFO"):
				t.Fatalf("isthmus says: %s", line)
			case strings.Contains(line, "msg=serving"):
				_, address, _ = strings.Cut(line, " xds=")
				address, _, _ = strings.Cut(address, " ")
			case strings.Contains(line, "source is live"):
				live = true
			}
		case <-late:
			t.Fatalf("isthmus does not serve after %s", patience)
		}
	}
	return address
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
