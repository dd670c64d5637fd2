package streams

import (
	"cmp"
	"context"
	"crypto/x509"
	"net"
	"net/netip"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/loopback"
)

// Identity is the peer of a connection, by properties that do not depend on its own
// declarations.
type Identity struct {
	identity.Rights
	Address string // empty on this machine
	From    string // its address and port, for people

	proof identity.Proof
	by    *connection
}

// Key returns the key by which streams are counted; empty if they are not.
func (who Identity) Key() string {
	return cmp.Or(who.ID(), who.Address)
}

// identify returns the identity that a stream proves, by the certificate of its connection, by
// its token, or by both.
func (s *Server) identify(ctx context.Context) (Identity, error) {
	var who Identity
	other, ok := peer.FromContext(ctx)
	if !ok {
		return who, nil
	}
	who.Address, who.From = loopback.Remote(other.Addr), other.Addr.String()
	shown := identity.Evidence{Peer: addressOf(other.Addr)}
	if s.options.takesTokens() {
		shown.Authorization = metadata.ValueFromIncomingContext(ctx, "authorization")
	}
	if on, ok := other.AuthInfo.(carried); ok {
		who.by = on.by
		shown.Chains, shown.Secure = shownBy(on.AuthInfo)
	}
	proof, err := s.options.Identity.Prove(ctx, shown)
	if err != nil {
		return who, grpcstatus.Errorf(rejection(shown), "%v", err)
	}
	if proof.ID == "" && shown.Secure && s.options.takesTokens() {
		return who, grpcstatus.Error(codes.Unauthenticated, "the client proves no identity; give it a client certificate, or a token as 'isthmus ca token' prints it")
	}
	who.proof = proof
	if who.Rights, err = s.options.Identity.Admit(proof, s.options.Demands, who.From); err != nil {
		return who, grpcstatus.Error(codes.PermissionDenied, err.Error())
	}
	return who, nil
}

// rejection is the code of the error about invalid evidence. A token may be replaced on the next
// stream, and a certificate was issued for another purpose.
func rejection(shown identity.Evidence) codes.Code {
	if len(shown.Authorization) > 0 {
		return codes.Unauthenticated
	}
	return codes.PermissionDenied
}

// shownBy returns the chains of the client's certificate that the handshake verified, and whether
// the connection has TLS.
func shownBy(info credentials.AuthInfo) (chains [][]*x509.Certificate, secure bool) {
	with, ok := info.(credentials.TLSInfo)
	return with.State.VerifiedChains, ok
}

// addressOf returns the address of a peer; invalid on a unix socket.
func addressOf(addr net.Addr) netip.Addr {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap()
}

// tenure returns a context that ends, with the reason, when the certificate or the token of a
// stream's client holds no more. The caller releases it at the end of the stream.
func (s *Server) tenure(who Identity) (over context.Context, release func()) {
	over, end := context.WithCancelCause(context.Background())
	connected := who.by.afterLife(func() { end(who.by.dismissed()) })
	proven := s.options.Identity.Keep(who.proof, func(why error) {
		end(grpcstatus.Errorf(codes.Unauthenticated, "%v", why))
	})
	return over, func() {
		connected()
		proven()
		end(nil)
	}
}
