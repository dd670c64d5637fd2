package cli_test

import (
	"bytes"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// theSilence is the key under which a script keeps its silent server.
type theSilence struct{}

// silent is a server that lets everybody in and never says anything.
type silent struct {
	listener net.Listener
	asked    chan string // the other side of each connection
}

func silence(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: silence")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not wait
	ts.Check(err)
	s := ts.Value(theSilence{}).(*silent)
	s.listener, s.asked = listener, make(chan string, 1000)
	ended := make(chan struct{})
	go s.accept(ended)
	ts.Defer(func() { _ = listener.Close(); <-ended })
	ts.Setenv("SILENCE", "http://"+listener.Addr().String())
}

func (s *silent) accept(ended chan<- struct{}) {
	defer close(ended)
	var open []net.Conn
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			break
		}
		open = append(open, conn)
		s.asked <- conn.RemoteAddr().String()
	}
	for _, conn := range open {
		_ = conn.Close()
	}
}

// drain leaves nothing of the connections of those who have ended. They may wait to be
// accepted, before one that is opened now.
func (s *silent) drain(ts *testscript.TestScript) {
	last, err := net.Dial("tcp", s.listener.Addr().String()) //nolint:noctx // it does not wait
	ts.Check(err)
	defer last.Close()
	for <-s.asked != last.LocalAddr().String() {
	}
}

var signals = map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP}

func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: interrupt SIGNAL STATUS COMMAND...")
	}
	var said bytes.Buffer
	c := command(ts, args[2:])
	c.Stderr = &said
	s := ts.Value(theSilence{}).(*silent)
	s.drain(ts)
	ts.Check(c.Start())
	defer func() { _ = c.Process.Kill() }() // it may have ended
	ended := make(chan struct{})
	go func() { _ = c.Wait(); close(ended) }()
	select {
	case <-s.asked:
	case <-ended:
		ts.Fatalf("%s before it was interrupted, saying: %s", c.ProcessState, said.String())
	case <-time.After(until.Patience):
		ts.Fatalf("it asks nobody")
	}
	ts.Check(c.Process.Signal(signals[args[0]]))
	select {
	case <-ended:
	case <-time.After(until.Patience):
		ts.Fatalf("it goes on")
	}
	if got := strconv.Itoa(c.ProcessState.ExitCode()); got != args[1] {
		ts.Fatalf("exit status %s, not %s, saying: %s", got, args[1], said.String())
	}
	ts.Check(os.WriteFile(ts.MkAbs("said"), said.Bytes(), 0o600))
}
