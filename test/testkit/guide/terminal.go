package guide

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// terminal is one in which a command runs.
type terminal struct {
	text  string
	log   string // file
	shell *exec.Cmd
	ended chan struct{} // closed when the command has ended
}

// open runs a command in a terminal, in which it has been ended if it ran.
func (r *Reader) open(text string) {
	r.T.Helper()
	t := &terminal{text: text, ended: make(chan struct{})}
	for i, other := range r.terminals {
		if other.text == text {
			other.end()
			r.terminals = append(r.terminals[:i], r.terminals[i+1:]...)
			break
		}
	}
	log, err := os.CreateTemp(r.Dir, "terminal-*.log")
	if err != nil {
		r.T.Fatal(err)
	}
	defer log.Close() // the process has its own
	t.log = log.Name()
	// The command is the process itself, and no child of a shell that ends before it.
	t.shell = exec.Command("sh", "-euc", "exec "+text) //nolint:noctx // it ends with the test
	t.shell.Dir, t.shell.Env, t.shell.SysProcAttr = r.Dir, r.Env, leash()
	t.shell.Stdout, t.shell.Stderr = log, log
	if err := t.shell.Start(); err != nil {
		r.T.Fatal(err)
	}
	go func() {
		defer close(t.ended)
		_ = t.shell.Wait() // how it ended is in its log
	}()
	r.terminals = append(r.terminals, t)
}

// mustRun is that no command has ended that is to go on.
func (r *Reader) mustRun() {
	r.T.Helper()
	for _, t := range r.terminals {
		select {
		case <-t.ended:
			r.T.Fatalf("this has ended by itself: %s", t)
		default:
		}
	}
}

func (r *Reader) closeTerminals() {
	for _, t := range r.terminals {
		t.end()
		if r.T.Failed() {
			r.T.Log(t)
		}
	}
}

// end ends the command, with all that it runs.
func (t *terminal) end() {
	_ = syscall.Kill(-t.shell.Process.Pid, syscall.SIGKILL) // it may be gone
	<-t.ended
}

// String is the command with what it said.
func (t *terminal) String() string {
	said, _ := os.ReadFile(t.log)
	return fmt.Sprintf("%s\n--- %s\n%s", strings.TrimSpace(t.text), filepath.Base(t.log), said)
}
