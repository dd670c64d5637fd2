package istio_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/calls"
)

// startBackend starts a backend at an address. That may be taken for a moment
// after a free port was looked for: a process that is being started has a copy
// of what was open, until it runs a program of its own.
func startBackend(t *testing.T, name, address string) *calls.Backend {
	t.Helper()
	var b *calls.Backend
	await(t, "a listener", func() (err error) {
		b, err = calls.Listen(t, name, address)
		return err
	})
	return b
}

// freePort finds a port for backends of one service, each on an address of its
// own: a Service Center knows no ports but those of the instances.
func freePort(t *testing.T) string {
	t.Helper()
	port, err := cluster.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}
