// Package bind binds what servers listen on.
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

// abandoned reports whether nobody listens on a socket: a process that was
// killed leaves its file behind. Anything that is not a socket is left alone.
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
