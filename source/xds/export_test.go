package xds

import (
	"context"
	"net"
	"time"
)

// Ping has the source ping so often.
func (s *Source) Ping(every time.Duration) { s.pings = every }

// DialWith has the source make its connections so.
func (s *Source) DialWith(dial func(context.Context, string) (net.Conn, error)) { s.dial = dial }
