// Package bind binds the listeners of servers.
package bind

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
)

// Listen binds a host and port, or unix:///path.
func Listen(ctx context.Context, address string, bind func(ctx context.Context, network, address string) (net.Listener, error)) (net.Listener, error) {
	path, unix := strings.CutPrefix(address, "unix://")
	if !unix {
		return bind(ctx, "tcp", address)
	}
	l, err := bind(ctx, "unix", path)
	if errors.Is(err, syscall.EADDRINUSE) && abandoned(ctx, path) && os.Remove(path) == nil {
		return bind(ctx, "unix", path)
	}
	return l, err
}

// abandoned reports whether a unix socket has no listener: a killed process leaves its file
// behind. A file that is not a socket is never abandoned.
func abandoned(ctx context.Context, path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != os.ModeSocket {
		return false
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
