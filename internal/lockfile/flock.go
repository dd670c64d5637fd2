//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package lockfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// Outlives reports whether the lock of a killed process remains.
const Outlives = false

// take locks a file until the file is closed or the process ends, by any cause. It
// fails with [errHeld] if another process has locked the file, and returns the
// file's text. It follows no link: the file is emptied.
func take(path string) (f *os.File, holder string, err error) {
	f, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if errors.Is(err, syscall.ELOOP) {
		return nil, "", fmt.Errorf("%s is a symbolic link, and a lock has to be a file: remove it", path)
	}
	if err != nil {
		return nil, "", err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, "", nil
		}
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	text, _ := io.ReadAll(io.LimitReader(f, 64))
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errHeld
	}
	return nil, strings.TrimSpace(string(text)), err
}

// Release unlocks before it closes. A process that is just being forked has the
// file, too, and would keep the lock until it runs its program.
func Release(f *os.File) {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	_ = f.Close()
}
