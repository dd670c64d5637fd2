package xds

import (
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/isthmus-mesh/isthmus/internal/spiffe"
	"github.com/isthmus-mesh/isthmus/internal/streams"
)

// narrow returns the namespace of a client, given its claim. Labels need no proof: they
// only select among the resources of its namespace.
func narrow(who streams.Identity, claimed string) (string, error) {
	switch {
	case who.Name == "" || claimed == who.Namespace:
		return claimed, nil
	case claimed == "":
		return who.Namespace, nil
	default:
		return "", grpcstatus.Errorf(codes.PermissionDenied,
			"the node says it is in namespace %q, but its certificate is that of %s; correct NAMESPACE in the node's metadata, or its id", claimed, who.Name)
	}
}

// checkNode rejects a node without an id, with oversized fields, or in an invalid
// namespace.
func (s *Server) checkNode(m request, namespace string) error {
	id := m.GetNode().GetId()
	if id == "" {
		return errNoNode
	}
	if most := s.limits.NodeBytes; len(id) > most || len(namespace) > most {
		return s.Reject(streams.TooMuch, streams.TooLarge("a node whose id or namespace has more than %d bytes; shorten them in the client's bootstrap", most))
	}
	if namespace != "" && !spiffe.IsNamespace(namespace) {
		return s.Reject(streams.NotWho, grpcstatus.Errorf(codes.InvalidArgument,
			"the node %q says it is in namespace %q, which is not %s; correct NAMESPACE in the node's metadata, or its id",
			streams.Cut(id, streams.ShownBytes), streams.Cut(namespace, streams.ShownBytes), spiffe.NamespaceForm))
	}
	if l := m.GetNode().GetLocality(); len(l.GetRegion())+len(l.GetZone())+len(l.GetSubZone()) > s.limits.NodeBytes {
		return s.Reject(streams.TooMuch, streams.TooLarge("a node with a locality of more than %d bytes; shorten it in the client's bootstrap", s.limits.NodeBytes))
	}
	for _, field := range [...]string{"NETWORK", "NODE_NAME", "CLUSTER_ID"} {
		if said := m.GetNode().GetMetadata().GetFields()[field].GetStringValue(); len(said) > longestPlace {
			return s.Reject(streams.TooMuch, streams.TooLarge("a node with a %s of more than %d bytes; shorten it in the node's metadata", field, longestPlace))
		}
	}
	return s.checkLabels(claimedLabels(m.GetNode()))
}

// longestPlace bounds each name of a client's location. The names are part of its view, and
// the network is kept with each of its addresses.
const longestPlace = 253

// checkLabels bounds the labels, which are kept as long as a client is connected.
func (s *Server) checkLabels(labels map[string]*structpb.Value) error {
	if most := s.limits.Labels; len(labels) > most {
		return s.Reject(streams.TooMuch, streams.TooLarge("a node with more than %d labels; remove some of LABELS in the node's metadata", most))
	}
	for name, value := range labels {
		if most := s.limits.NodeBytes; len(name) > most || len(value.GetStringValue()) > most {
			return s.Reject(streams.TooMuch, streams.TooLarge("a node with a label of more than %d bytes; shorten LABELS in the node's metadata", most))
		}
	}
	return nil
}

var errNoNode = grpcstatus.Error(codes.InvalidArgument, "the first request of a stream must carry node.id; set it in the client's bootstrap")
