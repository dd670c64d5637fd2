package cli

import (
	"errors"
	"io"
	"syscall"
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

// Unwrap returns the writer below, which may be a terminal.
func (o *outlet) Unwrap() io.Writer { return o.w }
