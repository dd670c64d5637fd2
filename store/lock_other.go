//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package store

import (
	"errors"
	"io/fs"
	"os"
)

// takeLock creates a file that must not exist. A process that is killed leaves
// it behind; the error says whose it was, so that an operator can remove it.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, errLocked
	}
	return f, err
}

func releaseLock(f *os.File) {
	_ = f.Close()
	_ = os.Remove(f.Name())
}
