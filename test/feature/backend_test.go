package feature_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/calls"
)

// backend is a backend that can be written to a registry.
type backend struct{ *calls.Backend }

// startBackend starts a backend on a free port.
func startBackend(t *testing.T, name string) *backend {
	t.Helper()
	b, err := listenBackend(t, name, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// startBackends starts several.
func startBackends(t *testing.T, names ...string) []*backend {
	t.Helper()
	backends := make([]*backend, len(names))
	for i, name := range names {
		backends[i] = startBackend(t, name)
	}
	return backends
}

func listenBackend(t *testing.T, name, address string) (*backend, error) {
	t.Helper()
	b, err := calls.Listen(t, name, address)
	return &backend{b}, err
}

// Port is where the backend listens.
func (b *backend) Port() string { return strconv.Itoa(b.Addr.Port) }

// Endpoint is the backend as an endpoint of a ServiceEntry or the
// specification of a WorkloadEntry. More are further fields, such as "weight: 3".
func (b *backend) Endpoint(more ...string) string {
	fields := append([]string{
		fmt.Sprintf("address: %q", b.Addr.IP), fmt.Sprintf("ports: {grpc: %d}", b.Addr.Port),
	}, more...)
	return "{" + strings.Join(fields, ", ") + "}"
}

// endpoints are several backends as endpoints.
func endpoints(backends ...*backend) []string {
	list := make([]string, len(backends))
	for i, b := range backends {
		list[i] = b.Endpoint()
	}
	return list
}
