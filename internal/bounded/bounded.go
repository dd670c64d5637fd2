// Package bounded reads foreign input up to a bound. Larger input is an error, and is never
// truncated. It has no state.
package bounded

import (
	"fmt"
	"io"
	"os"
)

// Most is the number of bytes that a command reads of a response or a file.
const Most = 256 << 20

// Reader returns a reader that fails after more than [Most] bytes. The text names the bytes
// in the error.
func Reader(r io.Reader, what string) io.Reader { return &reader{from: r, left: Most, what: what} }

type reader struct {
	from io.Reader
	left int
	what string
}

// Read implements [io.Reader].
func (r *reader) Read(p []byte) (int, error) {
	if r.left == 0 { // one more byte shows whether there is more
		if n, err := r.from.Read(make([]byte, 1)); n == 0 {
			return 0, err
		}
		return 0, &TooLarge{r.what}
	}
	n, err := r.from.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}

// File reads a file whole.
func File(path string) ([]byte, error) {
	file, err := os.Open(path) //nolint:gosec // the caller chooses it
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > Most { // the check takes no memory
		return nil, &TooLarge{path}
	}
	return io.ReadAll(Reader(file, path))
}

// TooLarge is the error of a text beyond the bound.
type TooLarge struct{ What string }

// Error implements [error].
func (t *TooLarge) Error() string {
	return fmt.Sprintf("%s has more than %d MiB, which is the most that is read", t.What, Most>>20)
}
