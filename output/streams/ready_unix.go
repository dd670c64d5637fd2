//go:build unix

package streams

import (
	"errors"
	"net"
	"syscall"
)

// rawOf returns the raw connection for waiting; nil if there is none.
func rawOf(conn net.Conn) syscall.RawConn {
	switch conn := conn.(type) {
	case *net.TCPConn:
		raw, _ := conn.SyscallConn()
		return raw
	case *net.UnixConn:
		raw, _ := conn.SyscallConn()
		return raw
	default: // a wrapper of a connection may read in another way
		return nil
	}
}

func readFrom(fd uintptr, p []byte) (int, error) {
	for {
		if n, err := syscall.Read(int(fd), p); !errors.Is(err, syscall.EINTR) { //nolint:gosec // it is the kernel's own number
			return n, err
		}
	}
}

func nothingYet(err error) bool {
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EWOULDBLOCK)
}
