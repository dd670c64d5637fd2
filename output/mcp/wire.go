package mcp

import (
	"encoding/hex"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Field numbers of istio.mcp.v1alpha1.Resources.
const (
	fieldVersion     = 1
	fieldCollection  = 2
	fieldResources   = 3
	fieldRemoved     = 4
	fieldNonce       = 5
	fieldIncremental = 6
)

// Frame returns the bytes before the body of a resource, an encoded
// istio.mcp.v1alpha1.Resource. They are the same in a full state and in an increment.
func Frame(e world.Encoded) [2][]byte {
	head := protowire.AppendTag(nil, fieldResources, protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(e.Size()))
	return [2][]byte{head, head}
}

func encode(r *session.Response, collection, nonce string) *streams.Message {
	return streams.Encode(r, tail(r, collection, nonce))
}

// tail returns the fields of a response other than its resources.
func tail(r *session.Response, collection, nonce string) []byte {
	const room = 96
	b := make([]byte, 0, room+len(collection))
	var version [2 * len(r.Version)]byte
	b = protowire.AppendTag(b, fieldVersion, protowire.BytesType)
	b = protowire.AppendBytes(b, hex.AppendEncode(version[:0], r.Version[:]))
	b = streams.AppendString(b, fieldCollection, collection)
	for _, name := range r.Removed {
		b = streams.AppendString(b, fieldRemoved, name)
	}
	b = streams.AppendString(b, fieldNonce, nonce)
	if r.Mode == world.Delta {
		b = protowire.AppendTag(b, fieldIncremental, protowire.VarintType)
		b = protowire.AppendVarint(b, 1)
	}
	return b
}
