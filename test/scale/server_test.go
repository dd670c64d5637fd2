package scale

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// server is the program at work in a process of its own.
type server struct {
	command *exec.Cmd
	xds     string // the addresses it listens on
	admin   string
	started time.Time
	ended   bool
}

const config = `
sources:
- name: files
  required: true
  file: {path: %q}
outputs:
  xds: {listen: 127.0.0.1:0}
store: {dataDir: %q}
admin: {listen: 127.0.0.1:0}
log: {level: info, format: json}
`

// startServer runs a program over a registry as [server.start] does. What it
// reads survives in dataDir, unless that is empty.
func startServer(tb testing.TB, program string, r *registry, dataDir string) *server {
	tb.Helper()
	return startOn(tb, program, fmt.Sprintf(config, r.dir, dataDir))
}

// startOn runs a program with a configuration as [server.start] does.
func startOn(tb testing.TB, program, configuration string) *server {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "isthmus.yaml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		tb.Fatal(err)
	}
	s := &server{command: exec.Command(program, "serve", "--config", file)}
	s.command.Env = append(os.Environ(), profiledServer+"="+*profile)
	s.start(tb)
	return s
}

// start runs the server's command until the benchmark ends, if it is not stopped
// before, and returns once it is ready.
func (s *server) start(tb testing.TB) {
	tb.Helper()
	log, err := s.command.StderrPipe()
	if err != nil {
		tb.Fatal(err)
	}
	s.started = time.Now()
	if err := s.command.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.stop(tb) })
	s.awaitAddresses(tb, bufio.NewScanner(log))
	go func() { _, _ = io.Copy(io.Discard, log) }()
	s.await(tb, "readiness", func() bool { return s.get("/readyz") != nil })
}

// stop ends the server as an operator does.
func (s *server) stop(tb testing.TB) {
	tb.Helper()
	if s.ended {
		return
	}
	s.ended = true
	_ = s.command.Process.Signal(syscall.SIGTERM)
	if err := s.command.Wait(); err != nil {
		tb.Errorf("the server ended badly: %v", err)
	}
}

// awaitAddresses reads the log up to the line that tells where the server listens.
func (s *server) awaitAddresses(tb testing.TB, log *bufio.Scanner) {
	tb.Helper()
	var seen strings.Builder
	for log.Scan() {
		var line struct{ Msg, XDS, Admin string }
		if json.Unmarshal(log.Bytes(), &line) == nil && line.Msg == "serving" {
			s.xds, s.admin = line.XDS, line.Admin
			return
		}
		seen.WriteString(log.Text() + "\n")
	}
	tb.Fatalf("the server does not serve:\n%s", seen.String())
}

// patience is how long anything may take before a benchmark gives up.
const patience = 3 * until.Patience

func (s *server) await(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("no %s within %v", what, patience)
		}
	}
}

// get returns a page of the admin address, nil if there is none.
func (s *server) get(path string) []byte { return probe.Get("http://" + s.admin + path) }

// metrics are those of a scrape.
type metrics struct{ probe.Metrics }

func (s *server) metrics(tb testing.TB) metrics {
	tb.Helper()
	m := probe.ParseMetrics(tb, s.get("/metrics"))
	if len(m) == 0 {
		tb.Fatal("the server shows no metrics")
	}
	return metrics{m}
}
