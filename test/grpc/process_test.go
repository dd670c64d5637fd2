package grpc_test

import (
	"io"
	"os/exec"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/transcript"
)

// process is a program that runs beside the test and ends with it.
type process struct {
	t       *testing.T
	name    string
	command *exec.Cmd
	ended   chan struct{} // closed when the process is gone
	err     error         // how it ended, once it has
	log     *transcript.Log
}

// startProcess starts a program with additions to the environment. What it says
// on standard error is its log; what it prints is handed to out.
func startProcess(t *testing.T, name string, out io.Writer, env []string, arguments ...string) (p *process, in io.Closer) {
	t.Helper()
	p = &process{t: t, name: name, ended: make(chan struct{}), log: &transcript.Log{}}
	p.command = exec.Command(arguments[0], arguments[1:]...)
	p.command.Env = append(p.command.Environ(), env...)
	p.command.Stdout, p.command.Stderr = out, p.log
	p.command.SysProcAttr = leash()
	in, err := p.command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatalf("starting %s: %v", name, err)
	}
	go func() {
		defer close(p.ended)
		p.err = p.command.Wait()
	}()
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("--- log of %s\n%s", name, p.log)
		}
	})
	return p, in
}

// Kill ends the process at once, as kill -9 does, and waits until it is gone.
func (p *process) Kill() {
	_ = p.command.Process.Kill() // it may be gone
	<-p.ended
}

// Gone reports whether the process has ended.
func (p *process) Gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}
