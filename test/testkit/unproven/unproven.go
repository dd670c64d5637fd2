// Package unproven is a client without a proof, and the listener that demands one: it calls each
// registered method, and expects to be rejected.
package unproven

import (
	"context"
	"crypto/tls"
	"iter"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/identity"
	testca "github.com/isthmus-mesh/isthmus/test/testkit/authority"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/verifier"
)

// Border is the identity of a listener that takes certificates and tokens, and demands one of them.
type Border struct {
	CA       *testca.Authority    // of certificates
	Own      *authority.Authority // of tokens
	TLS      *tls.Config          // of the listener
	Verifier *identity.Verifier   // run by the test, if at all
}

// NewBorder returns a border.
func NewBorder(t *testing.T) Border {
	t.Helper()
	b, dir := Border{CA: testca.New(t, "ca")}, filepath.Join(t.TempDir(), "authority")
	pair := b.CA.Issue("server")
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	b.TLS = &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert},
		ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: b.CA.Client().RootCAs,
	}
	if b.Own, err = authority.Create(dir, spiffeid.RequireTrustDomainFromString("cluster.local"), time.Now()); err != nil {
		t.Fatal(err)
	}
	b.Verifier = verifier.New(t, identity.Config{Authority: identity.Authority{Dir: dir, TTL: identity.DefaultTTL}})
	return b
}

// Credentials are of a client that trusts the listener and shows no certificate.
func (b Border) Credentials() credentials.TransportCredentials {
	return credentials.NewTLS(b.CA.Client())
}

// Server is a listener's server.
type Server interface {
	GetServiceInfo() map[string]grpc.ServiceInfo
	Rejected() iter.Seq2[string, uint64]
}

// IsRejected calls every method of a server but the health check, on a connection without one.
// Each call must be rejected and counted.
func IsRejected(t *testing.T, server Server, conn *grpc.ClientConn) {
	t.Helper()
	for service, info := range server.GetServiceInfo() {
		for _, m := range info.Methods {
			method := "/" + service + "/" + m.Name
			if method == healthv1.Health_Check_FullMethodName {
				continue
			}
			before := Counts(server)["identity"]
			if err := end(t, conn, method); grpcstatus.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "proves no identity; give it") {
				t.Errorf("%s: got %v", method, err)
			}
			if n := Counts(server)["identity"] - before; n != 1 {
				t.Errorf("%s: %d rejections are counted", method, n)
			}
		}
	}
}

// Counts are the rejections of a server by cause.
func Counts(server Server) map[string]uint64 { return maps.Collect(server.Rejected()) }

// end sends an empty request, and returns how the stream ends.
func end(t *testing.T, conn *grpc.ClientConn, method string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), until.Patience)
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		return err
	}
	_ = stream.SendMsg(&emptypb.Empty{}) // it may be rejected before
	return stream.RecvMsg(&emptypb.Empty{})
}
