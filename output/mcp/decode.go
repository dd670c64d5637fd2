package mcp

import (
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/output/streams"
)

// fieldInitialVersions of istio.mcp.v1alpha1.RequestResources is the only field that may
// repeat as often as a sink holds resources.
const (
	fieldInitialVersions = 3
	otherFields          = 32
)

var errNoRequest = grpcstatus.Error(codes.InvalidArgument, "the message is not an istio.mcp.v1alpha1.RequestResources")

// decode decodes a request. The request is measured first: a message in memory is a
// multiple of its size on the wire.
func (l *Limits) decode(text []byte) (*mcp.RequestResources, error) {
	if err := l.measure(text); err != nil {
		return nil, err
	}
	m := new(mcp.RequestResources)
	if err := proto.Unmarshal(text, m); err != nil {
		return nil, errNoRequest
	}
	return m, nil
}

// measure counts the fields of a request and keeps nothing of it.
func (l *Limits) measure(text []byte) error {
	versions, others := 0, 0
	for len(text) > 0 {
		field, kind, n := protowire.ConsumeTag(text)
		if n < 0 {
			return errNoRequest
		}
		size := protowire.ConsumeFieldValue(field, kind, text[n:])
		if size < 0 {
			return errNoRequest
		}
		text = text[n+size:]
		if field == fieldInitialVersions {
			if versions++; versions > l.Versions {
				return streams.TooLarge("a request with more than %d initial resource versions, which is all a sink may hold of a collection", l.Versions)
			}
			continue
		}
		if others++; others > otherFields || size > l.FieldBytes {
			return streams.TooLarge("a request with a field of more than %d bytes, such as the sink's node, or with the same field again and again", l.FieldBytes)
		}
	}
	return nil
}
