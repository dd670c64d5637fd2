package mcp

import (
	"net"
	"syscall"
	"testing"
	"time"
)

// TCP loses a connection to a peer that is gone after 30 s: it sends a probe after 10 s without a byte, and
// another each 5 s until four have no answer.
func TestDialledConnectionsAreProbed(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := new(Config).connect(t.Context(), listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	option := func(level, name int) (value int) {
		t.Helper()
		var failed error
		if err := raw.Control(func(fd uintptr) { value, failed = syscall.GetsockoptInt(int(fd), level, name) }); err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		return value
	}
	if option(syscall.SOL_SOCKET, syscall.SO_KEEPALIVE) == 0 {
		t.Error("the connection is not probed")
	}
	seconds := option(syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE) +
		option(syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL)*option(syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT)
	if after := time.Duration(seconds) * time.Second; after > 30*time.Second {
		t.Errorf("a connection is lost after %s", after)
	}
}
