package term

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Terminal returns the device below a writer, if it can redraw lines. A writer with a
// method Unwrap is looked through.
func Terminal(w io.Writer) (*os.File, bool) {
	if over, ok := w.(interface{ Unwrap() io.Writer }); ok {
		w = over.Unwrap()
	}
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return nil, false
	}
	info, err := f.Stat()
	return f, err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Rows returns how many rows a terminal has now; 0 if that is unknown.
func Rows(terminal *os.File) int {
	_, rows, err := term.GetSize(int(terminal.Fd())) //nolint:gosec // a file descriptor is small
	if err != nil {
		return 0
	}
	return rows
}
