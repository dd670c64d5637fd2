package scale

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// server is the program at work in a process of its own.
type server struct {
	process *os.Process
	xds     string // the addresses it listens on
	admin   string
}

const config = `
sources:
- name: files
  required: true
  file: {path: %s}
outputs:
  xds: {listen: 127.0.0.1:0}
admin: {listen: 127.0.0.1:0}
log: {level: info, format: json}
`

// startServer runs the program over a registry until the benchmark ends, and
// returns once it is ready.
func startServer(b *testing.B, r *registry) *server {
	b.Helper()
	path, err := program()
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(b.TempDir(), "isthmus.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, config, r.dir), 0o600); err != nil {
		b.Fatal(err)
	}
	command := exec.Command(path, "serve", "--config", file)
	command.Env = append(os.Environ(), profiledServer+"="+*profile)
	log, err := command.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		if err := command.Wait(); err != nil {
			b.Errorf("the server ended badly: %v", err)
		}
	})
	s := &server{process: command.Process}
	s.awaitAddresses(b, bufio.NewScanner(log))
	go func() { _, _ = io.Copy(io.Discard, log) }()
	s.await(b, "readiness", func() bool { return s.get("/readyz") != nil })
	return s
}

// awaitAddresses reads the log up to the line that tells where the server listens.
func (s *server) awaitAddresses(b *testing.B, log *bufio.Scanner) {
	b.Helper()
	var seen strings.Builder
	for log.Scan() {
		var line struct{ Msg, XDS, Admin string }
		if json.Unmarshal(log.Bytes(), &line) == nil && line.Msg == "serving" {
			s.xds, s.admin = line.XDS, line.Admin
			return
		}
		seen.WriteString(log.Text() + "\n")
	}
	b.Fatalf("the server does not serve:\n%s", seen.String())
}

// patience is how long anything may take before a benchmark gives up.
const patience = time.Minute

func (s *server) await(b *testing.B, what string, holds func() bool) {
	b.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			b.Fatalf("no %s within %v", what, patience)
		}
	}
}

// get returns a page of the admin address, nil if there is none.
func (s *server) get(path string) []byte {
	answer, err := http.Get("http://" + s.admin + path)
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return nil
	}
	return page
}

// cpu is the processor time the server has used. It is what utime and stime
// of /proc/PID/stat add up to, without their steps of 10 ms: the sum over its
// threads, none of which ends.
func (s *server) cpu(b *testing.B) time.Duration {
	b.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", s.process.Pid))
	if err != nil || len(files) == 0 {
		b.Fatal("no /proc/PID/task/*/schedstat: these benchmarks need Linux")
	}
	var sum time.Duration
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		first, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum
}

// memory is what the server holds, in bytes.
type memory struct {
	rss   float64 // as the kernel counts it
	heap  float64 // live objects after a collection
	stack float64
}

// memory returns what the server holds once it has collected its garbage.
// Nothing makes it do so but garbage, so it is asked for its metrics until it
// has collected three times; the least that it held meanwhile is what lives.
func (s *server) memory(b *testing.B) memory {
	b.Helper()
	const collections = "go_gc_duration_seconds_count"
	m := s.metrics(b)
	until := m.sum(collections) + 3
	held := memory{heap: math.Inf(1)}
	s.await(b, "garbage collection", func() bool {
		m = s.metrics(b)
		held.heap = min(held.heap, m.sum("go_memstats_heap_alloc_bytes"))
		return m.sum(collections) >= until
	})
	held.rss = m.sum("process_resident_memory_bytes")
	held.stack = m.sum("go_memstats_stack_inuse_bytes")
	return held
}

// metrics are the values of a scrape by series.
type metrics map[string]float64

func (s *server) metrics(b *testing.B) metrics {
	b.Helper()
	m := metrics{}
	for line := range bytes.Lines(s.get("/metrics")) {
		text := strings.TrimSpace(string(line))
		cut := strings.LastIndexByte(text, ' ')
		if cut < 0 || text[0] == '#' {
			continue
		}
		value, err := strconv.ParseFloat(text[cut+1:], 64)
		if err != nil {
			b.Fatalf("metrics: %q: %v", text, err)
		}
		m[text[:cut]] = value
	}
	if len(m) == 0 {
		b.Fatal("the server shows no metrics")
	}
	return m
}

// sum adds up all series of a metric.
func (m metrics) sum(name string) (sum float64) {
	for series, value := range m {
		if metric, _, _ := strings.Cut(series, "{"); metric == name {
			sum += value
		}
	}
	return sum
}
