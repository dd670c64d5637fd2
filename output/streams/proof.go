package streams

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/certs"
)

// handshake gives streams access to their connection, and the connection to the client's
// certificate.
type handshake struct {
	credentials.TransportCredentials
}

// carried is gRPC's information about the peer of a stream.
type carried struct {
	credentials.AuthInfo
	by *connection
}

// ServerHandshake implements [credentials.TransportCredentials].
func (h handshake) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := h.TransportCredentials.ServerHandshake(conn)
	by, ok := conn.(*connection)
	if !ok {
		return secured, info, err
	}
	if err != nil {
		by.failed(err)
		return secured, info, err
	}
	if info, ok := info.(credentials.TLSInfo); ok && len(info.State.VerifiedChains) > 0 {
		by.shows(info.State.PeerCertificates)
	}
	return carry(secured, by), carried{info, by}, nil
}

// failed reports a failed handshake. A handshake that took too long was reported when it
// was closed. A connection closed without a byte, such as a probe of a load balancer, is
// not reported.
func (c *connection) failed(err error) {
	if time.Since(c.since) < c.guard.limits.Handshake && !errors.Is(err, io.EOF) {
		_ = c.guard.Reject(badConnection, grpcstatus.Errorf(codes.Unauthenticated, "the TLS handshake of a connection from %s failed: %v", c.from(), err))
	}
}

// proof is the validity of a client's certificate: the authorities and the time up to which
// it was verified.
type proof struct {
	under *certs.Authorities
	until time.Time
}

// recheck ends connections with certificates that have expired, or that no current authority
// vouches for. It returns when stop is closed.
func (all *connections) recheck(every time.Duration, current func() *certs.Authorities, stop <-chan struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-tick.C:
			authorities := current()
			for _, c := range all.proven() {
				if err := c.prove(authorities, now); err != nil {
					c.dismiss(err)
				}
			}
		}
	}
}

// prove returns why a client's certificate is no longer valid; nil if it is. Verification
// costs a signature, so it is done only if the outcome can differ.
func (c *connection) prove(authorities *certs.Authorities, now time.Time) error {
	if c.proof.under == authorities && now.Before(c.proof.until) || context.Cause(c.life) != nil {
		return nil
	}
	until, err := authorities.Hold(c.chain, now)
	if err != nil {
		return grpcstatus.Errorf(codes.Unauthenticated, "the client certificate does not hold any more: %v; connect again with a new one", err)
	}
	c.proof = proof{authorities, until}
	return nil
}

// welcome records a stream on its connection, unless the connection has been dismissed. With
// unproven health checks alone, the connection stays one without a stream: a client that proves
// nothing has no more connections than one that is silent.
func (c *connection) welcome(unproven bool) error {
	if c == nil {
		return nil
	}
	if unproven {
		c.checked.Store(true)
		return nil
	}
	if why := c.dismissed(); why != nil {
		return c.guard.Reject(untrusted, why)
	}
	c.guard.connections.begin(c)
	return nil
}

// dismissed returns why the connection of a stream is no longer served; nil if it is.
func (c *connection) dismissed() error {
	if c == nil {
		return nil
	}
	return context.Cause(c.life)
}

// afterLife calls f when the connection is dismissed, unless it is released before.
func (c *connection) afterLife(f func()) (release func() bool) {
	if c == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(c.life, f)
}
