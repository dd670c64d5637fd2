package bounded_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/isthmus-mesh/isthmus/internal/bounded"
)

// spaces never end.
type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestWhatIsTooLargeIsAnErrorAndNotCutShort(t *testing.T) {
	t.Parallel()
	for name, from := range map[string]io.Reader{"exactly": io.LimitReader(spaces{}, bounded.Most), "more": spaces{}} {
		n, err := io.Copy(io.Discard, bounded.Reader(from, "it"))
		if n != bounded.Most {
			t.Errorf("%s: %d bytes are read", name, n)
		}
		if _, large := errors.AsType[*bounded.TooLarge](err); large != (name == "more") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFilesThatAreTooLargeAreNotRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := bounded.File(path); string(text) != "text" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if err := os.Truncate(path, bounded.Most+1); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, "/dev/zero"} {
		if _, err := bounded.File(path); err == nil {
			t.Errorf("%s is read", path)
		}
	}
}
