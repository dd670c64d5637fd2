package hostile

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// server is the program at work, in a process of its own with limited memory.
type server struct {
	command    *exec.Cmd
	log        journal
	xds, admin string        // addresses
	mcp, watch string        // likewise; empty without such outputs
	ended      chan struct{} // closed when the process is gone, with why in err
	err        error
}

// serving is what the program says of its addresses once it serves, in any order.
var serving = regexp.MustCompile(`msg=serving .*`)

func addressIn(line, of string) string {
	_, rest, _ := strings.Cut(line, " "+of+"=")
	address, _, _ := strings.Cut(rest, " ")
	return address
}

// serve runs the program with a configuration until the test ends, if it is not
// stopped before, and returns once it is ready.
func serve(t *testing.T, configuration string) *server {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "isthmus.yaml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &server{command: limited(path, "serve", "--config", file), ended: make(chan struct{})}
	s.command.Stderr = &s.log
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.ended)
		s.err = s.command.Wait()
	}()
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("the end of the program's log:\n%s", s.log.tail())
		}
	})
	await(t, "the program to be ready", s.ready)
	if err := limitInForce(s.command.Process.Pid); err != nil {
		t.Fatalf("no limit of memory is in force: %v", err)
	}
	return s
}

func (s *server) ready() error {
	if s.gone() {
		return fmt.Errorf("the program has ended: %w; its log says\n%s", s.err, s.log.tail())
	}
	if s.admin == "" {
		found := serving.FindString(s.log.tail())
		if found == "" {
			return fmt.Errorf("it does not serve yet, its log says\n%s", s.log.tail())
		}
		s.xds, s.admin = addressIn(found, "xds"), addressIn(found, "admin")
		s.mcp, s.watch = addressIn(found, "mcp"), addressIn(found, "watch")
	}
	return s.readyz()
}

// readyz asks on a connection of its own, as a kubelet does.
func (s *server) readyz() error {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: until.Patience}
	answer, err := client.Get("http://" + s.admin + "/readyz")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz says %s", answer.Status)
	}
	return nil
}

func (s *server) gone() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// kill ends the process as kill -9 does.
func (s *server) kill() {
	_ = s.command.Process.Kill()
	<-s.ended
}

// stop ends it as an operator does, and says what was wrong with its end.
func (s *server) stop() error {
	if s.gone() {
		return fmt.Errorf("the program had ended by itself: %w", s.err)
	}
	_ = s.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
		return s.err
	case <-time.After(until.Patience):
		return errors.New("the program does not end when it is asked to")
	}
}

func (s *server) metrics(t testing.TB) probe.Metrics {
	t.Helper()
	m := probe.ParseMetrics(t, probe.Get("http://"+s.admin+"/metrics"))
	if len(m) == 0 {
		t.Fatalf("the program shows no metrics; its log ends with\n%s", s.log.tail())
	}
	return m
}

// forgetPeak has [server.peak] begin anew.
func (s *server) forgetPeak(t testing.TB) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.command.Process.Pid), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}

func (s *server) peak(t testing.TB) float64 {
	t.Helper()
	return probe.Memory(t, s.command.Process.Pid, "VmHWM")
}

// journal keeps the end of a log, and how a crash in it began.
type journal struct {
	mu    sync.Mutex
	text  []byte
	crash []byte // from the first sign of one on
}

// kept is how much of a log is worth reading.
const kept = 4 << 10

// crashes are its first words where the program, or what runs it, does not go on.
var crashes = regexp.MustCompile(`panic|fatal error|SIG[A-Z]+|^runtime: `)

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.crash) > 0 || crashes.Match(p) {
		j.crash = append(j.crash, p[:min(len(p), kept-len(j.crash))]...)
	}
	if j.text = append(j.text, p...); len(j.text) > 2*kept {
		j.text = bytes.Clone(j.text[len(j.text)-kept:])
	}
	return len(p), nil
}

// tail is the end of the log, after how a crash began.
func (j *journal) tail() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.crash) > 0 {
		return fmt.Sprintf("%s\n...\n%s", j.crash, j.text)
	}
	return string(j.text)
}

func (j *journal) panics() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return string(j.crash)
}
