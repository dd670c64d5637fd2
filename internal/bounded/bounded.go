// Package bounded reads what others wrote, up to a bound. What is larger is an error, never
// cut short. It has no state.
package bounded

import (
	"fmt"
	"io"
	"os"
)

// Most is how many bytes a command reads of a response or a file.
const Most = 256 << 20

// Reader returns a reader that fails once more than [Most] bytes come. What names the bytes
// in the error.
func Reader(r io.Reader, what string) io.Reader { return &reader{from: r, left: Most, what: what} }

type reader struct {
	from io.Reader
	left int
	what string
}

// Read implements [io.Reader].
func (r *reader) Read(p []byte) (int, error) {
	if r.left == 0 { // one byte more shows whether there is more
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
	if info, err := file.Stat(); err == nil && info.Size() > Most { // which takes no memory
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
