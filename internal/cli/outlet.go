package cli

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/term"
)

// outlet is a command's output. It remembers the first error, so that no command has to
// check each line: unprinted output must not pass for printed.
type outlet struct {
	w      io.Writer
	err    error  // the first error
	failed func() // called at the first error, if set
}

// Write implements [io.Writer].
func (o *outlet) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	if o.err = err; err != nil && o.failed != nil {
		o.failed()
	}
	return n, err
}

// closed reports whether the reader of the output has gone, as head does when it has read
// enough. That is no error. Usually the system ends a process for that by itself.
func (o *outlet) closed() bool { return errors.Is(o.err, syscall.EPIPE) }

// terminal returns w if it is a device that can redraw lines.
func terminal(w io.Writer) (*os.File, bool) {
	if o, ok := w.(*outlet); ok {
		w = o.w
	}
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return nil, false
	}
	info, err := f.Stat()
	return f, err == nil && info.Mode()&os.ModeCharDevice != 0
}

// rowsOf returns how many rows a terminal has at a time; 0 if that is not known.
func rowsOf(terminal *os.File) func() int {
	return func() int {
		_, rows, err := term.GetSize(int(terminal.Fd())) //nolint:gosec // a file descriptor is small
		if err != nil {
			return 0
		}
		return rows
	}
}
