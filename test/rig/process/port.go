package process

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
)

// Ports are taken from where no system takes them for outgoing connections, so
// that a process finds its port free when it starts, and when it starts again.
const lowest, highest = 20000, 29999

// next is where the search goes on. No port is handed out twice before all others were:
// who was given one may be slow to listen there.
var next = func() *atomic.Uint32 {
	var n atomic.Uint32
	n.Store(rand.Uint32N(highest - lowest + 1))
	return &n
}()

// FreeAddress finds an address of 127.0.0.1 on which nobody listens.
func FreeAddress(ctx context.Context) (string, error) {
	var config net.ListenConfig
	for range 100 {
		port := lowest + int(next.Add(1)%(highest-lowest+1))
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		listener, err := config.Listen(ctx, "tcp", address)
		if err != nil {
			continue // somebody listens there
		}
		return address, listener.Close()
	}
	return "", errors.New("no free port found on 127.0.0.1")
}
