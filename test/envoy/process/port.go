package process

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from where no system takes them for outgoing connections, so
// that a process finds its port free when it starts, and when it starts again.
const lowest, highest = 20000, 29999

// FreeAddress finds an address of 127.0.0.1 on which nobody listens.
func FreeAddress(ctx context.Context) (string, error) {
	var config net.ListenConfig
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(lowest+rand.IntN(highest-lowest+1)))
		listener, err := config.Listen(ctx, "tcp", address)
		if err != nil {
			continue // somebody listens there
		}
		return address, listener.Close()
	}
	return "", errors.New("no free port found on 127.0.0.1")
}
