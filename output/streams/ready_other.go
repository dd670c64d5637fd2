//go:build !unix

package streams

import (
	"net"
	"syscall"
)

// rawOf returns nil: this system cannot wait for a connection without a buffer.
func rawOf(net.Conn) syscall.RawConn { return nil }

func readFrom(uintptr, []byte) (int, error) { return 0, syscall.EINVAL }

func nothingYet(error) bool { return false }
