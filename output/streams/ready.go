package streams

import (
	"io"
	"syscall"

	"google.golang.org/grpc/mem"
)

// arrival is a read that waits for bytes before it takes a buffer. Of tens of thousands of
// connections nearly all are silent at any time, and none of these has a buffer. It belongs
// to the one goroutine that reads.
type arrival struct {
	raw syscall.RawConn // nil if this connection cannot be waited for without a buffer
	try func(fd uintptr) bool

	size   int
	pool   mem.BufferPool
	buffer *[]byte
	n      int
	err    error
}

// ReadOnReady is the method by which gRPC reads into buffers of a pool. gRPC implements it
// for TCP connections, but not for their wrappers. A connection with TLS does not use this
// method, because TLS keeps records of its own.
func (c *connection) ReadOnReady(size int, pool mem.BufferPool) (*[]byte, int, error) {
	a := &c.arrival
	if a.raw == nil {
		buffer := pool.Get(size)
		n, err := c.Read(*buffer)
		return buffer, n, err
	}
	a.size, a.pool = size, pool
	err := a.raw.Read(a.try)
	buffer, n := a.buffer, a.n
	if err == nil {
		err = a.err
	}
	a.pool, a.buffer, a.n, a.err = nil, nil, 0, nil
	if err == nil && n == 0 {
		err = io.EOF
	}
	return buffer, n, err
}

// take reads the available bytes into a buffer. It returns false if there are none.
func (a *arrival) take(fd uintptr) bool {
	a.buffer = a.pool.Get(a.size)
	if a.n, a.err = readFrom(fd, *a.buffer); a.err == nil {
		return true
	}
	a.pool.Put(a.buffer)
	a.buffer, a.n = nil, 0
	return !nothingYet(a.err)
}
