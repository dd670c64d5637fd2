package process

import (
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
)

// Ports are taken from where no system takes them for outgoing connections, so
// that a process finds its port free when it starts, and when it starts again.
const lowest, highest = 20000, 29999

// next is the port at which the search goes on. No port is given twice before all others were: a process
// may be slow to listen at one.
var next = func() *atomic.Uint32 {
	var n atomic.Uint32
	n.Store(rand.Uint32N(highest - lowest + 1))
	return &n
}()

// FreeAddress finds a free address of 127.0.0.1. Its port is this process's:
// no other process that asks here is given it, until this one ends or has asked for many more.
func FreeAddress() (string, error) {
	for range highest - lowest + 1 {
		port := lowest + int(next.Add(1)%(highest-lowest+1))
		if take(port) {
			return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), nil
		}
	}
	return "", errors.New("no free port found on 127.0.0.1")
}

// leases are the newest ports that were handed out, the oldest first, as sockets.
var leases struct {
	sync.Mutex
	list []int
}

const mostLeases = 500

// take leases a port that is free.
func take(port int) bool {
	socket, ok := lease(port)
	if !ok {
		return false
	}
	if !isFree(port) {
		endLease(socket)
		return false
	}
	leases.Lock()
	defer leases.Unlock()
	if leases.list = append(leases.list, socket); len(leases.list) > mostLeases {
		endLease(leases.list[0])
		leases.list = leases.list[1:]
	}
	return true
}

// tried has package os try, once, how processes can be started. It forks one for that, at the first
// process otherwise, and heeds no lock.
var tried = sync.OnceFunc(func() { _, _ = os.FindProcess(os.Getpid()) })

// isFree binds a port of 127.0.0.1 and lets go of it. No process is forked meanwhile: it
// would have a copy of the socket until it runs a program of its own, and the port would
// still be taken when the caller listens there.
func isFree(port int) bool {
	tried()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return false
	}
	defer syscall.Close(socket)
	return syscall.Bind(socket, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}) == nil
}
