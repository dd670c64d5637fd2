package cluster

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
)

// Ports are taken from where no system takes them for outgoing connections, so
// that a process finds its port free when it starts, and when it starts again.
const lowest, highest = 20000, 29999

// FreePort finds a port on which nobody listens.
func FreePort(ctx context.Context) (string, error) {
	addresses, err := freeAddresses(ctx, 1)
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(addresses[0])
	return port, err
}

// freeAddresses finds addresses of 127.0.0.1 on which nobody listens.
func freeAddresses(ctx context.Context, count int) ([]string, error) {
	var config net.ListenConfig
	var found []string
	for range 100 * count {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(lowest+rand.IntN(highest-lowest+1)))
		listener, err := config.Listen(ctx, "tcp", address)
		if err != nil {
			continue // somebody listens there
		}
		if err := listener.Close(); err != nil {
			return nil, err
		}
		if slices.Contains(found, address) {
			continue
		}
		if found = append(found, address); len(found) == count {
			return found, nil
		}
	}
	return nil, errors.New("no free port found on 127.0.0.1")
}
