package cluster

import (
	"net"

	"github.com/isthmus-mesh/isthmus/test/rig/process"
)

// FreePort finds a port on which nobody listens.
func FreePort() (string, error) {
	address, err := process.FreeAddress()
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(address)
	return port, err
}

// freeAddresses finds addresses of 127.0.0.1 on which nobody listens.
func freeAddresses(count int) ([]string, error) {
	found := make([]string, count)
	for i := range found {
		var err error
		if found[i], err = process.FreeAddress(); err != nil {
			return nil, err
		}
	}
	return found, nil
}
