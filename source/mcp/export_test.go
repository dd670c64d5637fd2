package mcp

import (
	"context"
	"net"
	"time"
)

// DialWith has connections made otherwise.
func (c *Config) DialWith(dial func(ctx context.Context, address string) (net.Conn, error)) {
	c.dialer = dial
}

// BindWith has the listener made otherwise.
func (c *Config) BindWith(bind func(ctx context.Context, address string) (net.Listener, error)) {
	c.listener = bind
}

// Hurry has a peer be late sooner: before its first collection, and before another.
func (c *Config) Hurry(first, rest time.Duration) {
	c.pace.first, c.pace.rest, c.pace.connect = first, rest, first
}
