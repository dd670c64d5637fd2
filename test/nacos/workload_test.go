package nacos_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// workload is a process that registers instances with Nacos's own client. It has one
// instance of a service at most, as that client wants it.
type workload struct {
	t       testing.TB
	command *exec.Cmd
	orders  io.WriteCloser
	answers *bufio.Scanner
	end     func()
}

// order is what a workload is to do; see its program.
type order struct {
	Remove   bool
	Service  string
	Group    string
	Address  string
	Port     uint64
	Weight   float64
	Metadata map[string]string
}

func newWorkload(t testing.TB, n *nacos) *workload {
	t.Helper()
	dir, err := folder("workload")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(workloadIn(os.Getenv(variableFolder)), strconv.Itoa(n.Port), dir)
	command.Stderr = os.Stderr
	command.SysProcAttr = leash()
	orders, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	w := &workload{t: t, command: command, orders: orders, answers: bufio.NewScanner(answers)}
	w.end = sync.OnceFunc(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // it was killed
	})
	t.Cleanup(w.end)
	return w
}

// do gives an order, and waits until it has been carried out.
func (w *workload) do(o order) {
	w.t.Helper()
	if o.Weight == 0 {
		o.Weight = 1
	}
	line, err := json.Marshal(o)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.orders.Write(append(line, '\n')); err != nil {
		w.t.Fatal(err)
	}
	if !w.answers.Scan() {
		w.t.Fatalf("the workload has ended: %v", w.answers.Err())
	}
	if got := w.answers.Text(); got != "ok" {
		w.t.Fatalf("%s: %s", line, got)
	}
}

// freeze stops it where it is.
func (w *workload) freeze() { w.signal(syscall.SIGSTOP) }

// thaw lets it go on.
func (w *workload) thaw() { w.signal(syscall.SIGCONT) }

func (w *workload) signal(s syscall.Signal) {
	w.t.Helper()
	if err := w.command.Process.Signal(s); err != nil {
		w.t.Fatal(err)
	}
}

// kill ends it as a crash does. Its instances are gone with it.
func (w *workload) kill() { w.end() }
