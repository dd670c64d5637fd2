//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package store

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// lockOutlives says whether the lock of a process that was killed stays.
const lockOutlives = true

// takeLock creates a file that must not exist. A process that is killed leaves
// it behind; the error says whose it was, so that an operator can remove it.
func takeLock(path string) (f *os.File, holder string, err error) {
	f, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		text, _ := os.ReadFile(path)
		return nil, strings.TrimSpace(string(text)), errLocked
	}
	return f, "", err
}

func releaseLock(f *os.File) {
	_ = f.Close()
	_ = os.Remove(f.Name())
}
