package streams

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/loopback"
	"github.com/isthmus-mesh/isthmus/internal/spiffe"
)

// Identity is the peer of a connection, by properties that do not depend on its own
// declarations.
type Identity struct {
	Name      string // its SPIFFE identity; empty if nothing is proven
	Namespace string // of the identity
	Address   string // empty on this machine
	From      string // its address and port, for people
	by        *connection
}

// Key returns the key by which streams are counted; empty if they are not.
func (who Identity) Key() string {
	if who.Name != "" {
		return who.Name
	}
	return who.Address
}

// identify reads the identity that the connection proves. A certificate without a known
// form of identity grants nothing, not even public access: it was issued for another
// purpose. Without trust domains, all are accepted.
func identify(ctx context.Context, trustDomains []string) (Identity, error) {
	var who Identity
	other, ok := peer.FromContext(ctx)
	if !ok {
		return who, nil
	}
	who.Address, who.From = loopback.Remote(other.Addr), other.Addr.String()
	on, ok := other.AuthInfo.(carried)
	if !ok {
		return who, nil
	}
	who.by = on.by
	info, ok := on.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 {
		return who, nil
	}
	id, namespace, err := spiffe.Read(info.State.PeerCertificates[0])
	if err == nil && len(trustDomains) > 0 && !slices.Contains(trustDomains, id.TrustDomain().Name()) {
		err = fmt.Errorf("the trust domain %q is not served here; add it to tls.trustDomains", id.TrustDomain().Name())
	}
	if err != nil {
		return who, grpcstatus.Errorf(codes.PermissionDenied, "client certificate: %v", err)
	}
	who.Name, who.Namespace = id.String(), namespace
	return who, nil
}
