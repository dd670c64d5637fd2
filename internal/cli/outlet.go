package cli

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// outlet is where a command prints. It remembers that this went wrong, so that
// no command has to ask after each line: what could not be printed must not pass
// for printed.
type outlet struct {
	w   io.Writer
	err error // the first one
}

// Write implements [io.Writer].
func (o *outlet) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	o.err = err
	return n, err
}

// closed reports whether whoever read what is printed has gone, as head does
// when it has seen enough. Nothing is wrong then. As a rule the system ends a
// process for that by itself.
func (o *outlet) closed() bool { return errors.Is(o.err, syscall.EPIPE) }

// isTerminal reports whether w is a device that can redraw lines.
func isTerminal(w io.Writer) bool {
	if o, ok := w.(*outlet); ok {
		w = o.w
	}
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
