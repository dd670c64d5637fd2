package simulation

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// serve runs the program on ServiceEntries until the test ends, and returns where it serves
// xDS. It has read all of them by then, and found nothing wrong with them. Istio goes by the
// age of objects, and Isthmus by the order of sources: so each object is a source, the
// oldest first.
func serve(t testing.TB, dir, entries, outbound string) (address string) {
	t.Helper()
	var sources strings.Builder
	documents := byAge(entries)
	for i, document := range documents {
		folder := filepath.Join(dir, fmt.Sprint("entries-", i))
		write(t, filepath.Join(folder, "entries.yaml"), document)
		fmt.Fprintf(&sources, "- {name: files-%d, only: {addresses: [0.0.0.0/0, \"::/0\"]}, localAddresses: allow, file: {path: %q}}\n", i, folder)
	}
	config := filepath.Join(dir, "isthmus.yaml")
	write(t, config, fmt.Sprintf(`
sources:
%s
outputs:
  xds: {listen: "127.0.0.1:0", envoy: {outbound: %s}}
admin: {listen: "127.0.0.1:0"}
log: {format: text}
`, sources.String(), outbound))
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
	return awaitServing(t, lines, len(documents))
}

// created finds when an object was created.
var created = regexp.MustCompile(`creationTimestamp: "([^"]*)"`)

// byAge splits objects, the oldest first. Objects that do not say their age come last.
func byAge(entries string) (documents []string) {
	for document := range strings.SplitSeq(entries, "\n---") {
		if strings.TrimSpace(document) != "" {
			documents = append(documents, document+"\n")
		}
	}
	age := func(document string) string {
		if found := created.FindStringSubmatch(document); found != nil {
			return found[1]
		}
		return "unknown" // after any digit
	}
	slices.SortStableFunc(documents, func(a, b string) int { return strings.Compare(age(a), age(b)) })
	return documents
}

// awaitServing reads a log until all sources have been read.
func awaitServing(t testing.TB, lines <-chan string, sources int) (address string) {
	t.Helper()
	late := time.After(patience)
	for live := 0; live < sources || address == ""; {
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
				live++
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
