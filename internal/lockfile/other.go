//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package lockfile

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// Outlives reports whether the lock of a killed process remains.
const Outlives = true

// take creates a file that must not exist. A killed process leaves the file
// behind; the error names that process, so that an operator can remove the file.
func take(path string) (f *os.File, holder string, err error) {
	f, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		text, _ := os.ReadFile(path)
		return nil, strings.TrimSpace(string(text)), errHeld
	}
	return f, "", err
}

func Release(f *os.File) {
	_ = f.Close()
	_ = os.Remove(f.Name())
}
