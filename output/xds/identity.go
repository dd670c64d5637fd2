package xds

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/isthmus-mesh/isthmus/internal/loopback"
	"github.com/isthmus-mesh/isthmus/internal/spiffe"
	"github.com/isthmus-mesh/isthmus/push"
)

// identity is who is at the other end of a connection, as far as that does not
// depend on what it says about itself.
type identity struct {
	name      string // its SPIFFE identity; empty if nothing is proven
	namespace string // that the identity stands for
	address   string // empty on this machine
	by        *connection
}

// identify reads what the connection proves. A certificate without an identity
// that we understand grants nothing, not even what is for everybody: it was
// meant for something else.
func (s *Server) identify(ctx context.Context) (identity, error) {
	var who identity
	other, ok := peer.FromContext(ctx)
	if !ok {
		return who, nil
	}
	who.address = loopback.Remote(other.Addr)
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
	if err == nil && len(s.config.TrustDomains) > 0 && !slices.Contains(s.config.TrustDomains, id.TrustDomain().Name()) {
		err = fmt.Errorf("the trust domain %q is not among those served here", id.TrustDomain().Name())
	}
	if err != nil {
		return who, s.rejected.record(notWho, grpcstatus.Errorf(codes.PermissionDenied, "client certificate: %v", err))
	}
	who.name, who.namespace = id.String(), namespace
	return who, nil
}

// narrow returns the namespace in which a client is, given what it claims.
// Labels need no proof: they choose among what its namespace may have.
func (who identity) narrow(claimed string) (string, error) {
	switch {
	case who.name == "" || claimed == who.namespace:
		return claimed, nil
	case claimed == "":
		return who.namespace, nil
	default:
		return "", grpcstatus.Errorf(codes.PermissionDenied,
			"the node says it is in namespace %q, but its certificate is that of %s; correct NAMESPACE in the node's metadata, or its id", claimed, who.name)
	}
}

// prove puts what is proven in the place of what is claimed.
func (who identity) prove(info *push.Info) {
	if who.name != "" {
		info.Identity, info.Proven = who.name, true
	}
}

// key is what streams are counted by; empty if they are not.
func (who identity) key() string {
	if who.name != "" {
		return who.name
	}
	return who.address
}

// checkNode rejects a node that says nothing, too much, or that it is in what
// cannot be a namespace.
func (s *Server) checkNode(m request, namespace string) error {
	id := m.GetNode().GetId()
	if id == "" {
		return errNoNode
	}
	if most := s.limits.NodeBytes; len(id) > most || len(namespace) > most {
		return s.rejected.record(tooMuch, tooLarge("a node whose id or namespace has more than %d bytes; shorten them in the client's bootstrap", most))
	}
	if namespace != "" && !spiffe.IsNamespace(namespace) {
		return s.rejected.record(notWho, grpcstatus.Errorf(codes.InvalidArgument,
			"the node %q says it is in namespace %q, which is not %s; correct NAMESPACE in the node's metadata, or its id",
			cut(id, shownBytes), cut(namespace, shownBytes), spiffe.NamespaceForm))
	}
	return s.checkLabels(claimedLabels(m.GetNode()))
}

// checkLabels bounds what is kept of every client for as long as it is connected.
func (s *Server) checkLabels(labels map[string]*structpb.Value) error {
	if most := s.limits.Labels; len(labels) > most {
		return s.rejected.record(tooMuch, tooLarge("a node with more than %d labels; remove some of LABELS in the node's metadata", most))
	}
	for name, value := range labels {
		if most := s.limits.NodeBytes; len(name) > most || len(value.GetStringValue()) > most {
			return s.rejected.record(tooMuch, tooLarge("a node with a label of more than %d bytes; shorten LABELS in the node's metadata", most))
		}
	}
	return nil
}

var errNoNode = grpcstatus.Error(codes.InvalidArgument, "the first request of a stream must carry node.id; set it in the client's bootstrap")
