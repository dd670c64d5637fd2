package xds

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
)

// Listen opens the listener of a configuration.
func Listen(ctx context.Context, c Config) (net.Listener, error) {
	var config net.ListenConfig
	path, unix := strings.CutPrefix(c.Listen, "unix://")
	if !unix {
		return config.Listen(ctx, "tcp", c.Listen)
	}
	l, err := config.Listen(ctx, "unix", path)
	if errors.Is(err, syscall.EADDRINUSE) && abandoned(ctx, path) && os.Remove(path) == nil {
		return config.Listen(ctx, "unix", path)
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
