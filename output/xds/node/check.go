package node

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/isthmus-mesh/isthmus/internal/spiffe"
	"github.com/isthmus-mesh/isthmus/output/streams"
)

// Limits bound the kept parts of a node.
type Limits struct {
	Bytes  int // of the id, the namespace, the locality, and each name and value of a label
	Labels int
}

// longestPlace bounds each name of a client's location. The names are part of its view, and
// the network is kept with each of its addresses.
const longestPlace = 253

// Check rejects a node with oversized fields, or in an invalid namespace.
func (l Limits) Check(node *corev3.Node, namespace string) (streams.Cause, error) {
	id := node.GetId()
	if len(id) > l.Bytes || len(namespace) > l.Bytes {
		return streams.TooMuch, streams.TooLarge("a node whose id or namespace has more than %d bytes; shorten them in the client's bootstrap", l.Bytes)
	}
	if namespace != "" && !spiffe.IsNamespace(namespace) {
		return streams.NotWho, grpcstatus.Errorf(codes.InvalidArgument,
			"the node %q says it is in namespace %q, which is not %s; correct NAMESPACE in the node's metadata, or its id",
			streams.Cut(id, streams.ShownBytes), streams.Cut(namespace, streams.ShownBytes), spiffe.NamespaceForm)
	}
	if at := node.GetLocality(); len(at.GetRegion())+len(at.GetZone())+len(at.GetSubZone()) > l.Bytes {
		return streams.TooMuch, streams.TooLarge("a node with a locality of more than %d bytes; shorten it in the client's bootstrap", l.Bytes)
	}
	for _, field := range [...]string{networkField, nodeNameField, clusterField} {
		if len(text(node, field)) > longestPlace {
			return streams.TooMuch, streams.TooLarge("a node with a %s of more than %d bytes; shorten it in the node's metadata", field, longestPlace)
		}
	}
	return streams.TooMuch, l.checkLabels(declaredLabels(node))
}

func (l Limits) checkLabels(labels map[string]*structpb.Value) error {
	if len(labels) > l.Labels {
		return streams.TooLarge("a node with more than %d labels; remove some of LABELS in the node's metadata", l.Labels)
	}
	for name, value := range labels {
		if len(name) > l.Bytes || len(value.GetStringValue()) > l.Bytes {
			return streams.TooLarge("a node with a label of more than %d bytes; shorten LABELS in the node's metadata", l.Bytes)
		}
	}
	return nil
}
