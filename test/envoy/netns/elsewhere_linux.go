package netns

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// Elsewhere is a network namespace of one thread of this process, for whatever is not on
// the machine of the workload that is tested.
type Elsewhere struct {
	// Path names the namespace, as for "ip link set … netns".
	Path string
	work chan func()
}

// NewElsewhere makes a namespace, in which there is nothing yet. It goes with [Elsewhere.Close]
// and the last socket of it.
func NewElsewhere() (*Elsewhere, error) {
	e := &Elsewhere{work: make(chan func())}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // and it ends with this goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		e.Path = fmt.Sprintf("/proc/%d/task/%d/ns/net", unix.Getpid(), unix.Gettid())
		made <- err
		for do := range e.work {
			do()
		}
	}()
	err := <-made
	if err != nil {
		close(e.work)
		err = fmt.Errorf("making another network namespace: %w", err)
	}
	return e, err
}

// Do runs a function in the namespace and waits until it has returned. Sockets that it makes
// by itself, and processes that it starts, belong there and stay there.
func (e *Elsewhere) Do(do func()) {
	done := make(chan struct{})
	e.work <- func() {
		defer close(done)
		do()
	}
	<-done
}

// Close lets the namespace go. Nothing may be done in it from then on.
func (e *Elsewhere) Close() { close(e.work) }
