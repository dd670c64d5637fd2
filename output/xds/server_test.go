package xds_test

import (
	"net"
	"testing"

	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/push"
)

// A process may be stopped before it serves, which is
// no failure of it.
func TestServeAfterStopEndsAtOnce(t *testing.T) {
	t.Parallel()
	server := xds.New(push.New(push.Config{Frame: xds.Frame}), xds.Options{})
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server.Stop(t.Context())
	if err := server.Serve(listener); err != nil {
		t.Errorf("it fails: %v", err)
	}
	if _, err := listener.Accept(); err == nil {
		t.Error("the listener is still open")
	}
}
