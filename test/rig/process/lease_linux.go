package process

import (
	"strconv"
	"syscall"
)

// lease takes a port for this process, among all that take ports here: until the socket is closed,
// at the latest when the process ends, the name of the socket is taken.
func lease(port int) (socket int, ok bool) {
	socket, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, false
	}
	// An abstract name, which is no file.
	if err := syscall.Bind(socket, &syscall.SockaddrUnix{Name: "@isthmus-test-port-" + strconv.Itoa(port)}); err != nil {
		_ = syscall.Close(socket)
		return 0, false
	}
	return socket, true
}

func endLease(socket int) { _ = syscall.Close(socket) }
