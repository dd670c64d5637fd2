// Package process runs programs beside the tests: they are killed, frozen and
// started again, and end with the test process however that ends.
package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Process is a program that runs beside the tests. Its methods belong to one
// goroutine.
type Process struct {
	Name string
	As   *User    // who runs it, if that is not the user of the tests
	Env  []string // beside that of the tests

	program   string
	arguments []string
	log       string // file; starting again goes on in it

	command *exec.Cmd
	frozen  bool
	ended   chan struct{} // closed when the process is gone
}

// User is one of whom nothing is known but the number.
type User struct {
	ID           uint32 // of the user and the group
	Capabilities []uintptr
}

// New describes a process that is not started yet. Its log is a file of that
// name in the folder, which is its working folder, too.
func New(dir, name, program string, arguments ...string) *Process {
	return &Process{Name: name, program: program, arguments: arguments, log: filepath.Join(dir, name+".log")}
}

// Start starts the process and waits until ready has no error. A process that
// does not become ready is ended.
func (p *Process) Start(ctx context.Context, ready func(context.Context) error) error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own
	p.command = exec.Command(p.program, p.arguments...)
	if p.As != nil {
		// The program may lie in a folder of the tests' own user.
		program, err := os.Open(p.program)
		if err != nil {
			return err
		}
		defer program.Close()
		p.command.Path, p.command.ExtraFiles = "/proc/self/fd/3", []*os.File{program}
	}
	p.command.Env = append(os.Environ(), p.Env...)
	p.command.Dir = filepath.Dir(p.log)
	p.command.Stdout, p.command.Stderr = log, log
	p.command.SysProcAttr = attributes(p.As)
	if err := p.command.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	p.ended, p.frozen = make(chan struct{}), false
	go func() {
		defer close(p.ended)
		_ = p.command.Wait() // how it ended is in its log
	}()
	if err := p.await(ctx, ready); err != nil {
		p.Kill()
		return fmt.Errorf("%s is not ready: %w\n%s", p.Name, err, p.Log())
	}
	return nil
}

// await asks until there is no error, or the process is gone.
func (p *Process) await(ctx context.Context, ready func(context.Context) error) error {
	again := time.NewTicker(25 * time.Millisecond)
	defer again.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return errors.New("it has ended")
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-again.C:
		}
	}
}

// Kill ends the process at once, as kill -9 does, and waits until it is gone.
func (p *Process) Kill() {
	if p.command == nil || p.command.Process == nil {
		return
	}
	_ = p.command.Process.Kill() // it may be gone
	<-p.ended
}

// Terminate asks the process to end, and kills it if it does not in time.
func (p *Process) Terminate(ctx context.Context) error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("ending %s: %w", p.Name, err)
	}
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("%s did not end: %w", p.Name, ctx.Err())
	}
}

// Freeze stops the process where it is, connections open, until [Process.Thaw].
func (p *Process) Freeze() error {
	p.frozen = true
	return p.command.Process.Signal(syscall.SIGSTOP)
}

// Thaw lets a frozen process go on.
func (p *Process) Thaw() error {
	p.frozen = false
	return p.command.Process.Signal(syscall.SIGCONT)
}

// Frozen reports whether the process is frozen.
func (p *Process) Frozen() bool { return p.frozen }

// Running reports whether the process has been started, has not ended and is
// not frozen.
func (p *Process) Running() bool {
	if p.ended == nil || p.frozen {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// ID is the number by which the system knows the process.
func (p *Process) ID() int { return p.command.Process.Pid }

// Ended is closed once the process is gone.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Log is everything that the process has logged so far.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.log)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err.Error()
	}
	return string(text)
}
