package mcp

import (
	"encoding/hex"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that everything but resources goes through
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/isthmus-mesh/isthmus/push"
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

// Frame returns what goes before the body of a resource, an encoded
// istio.mcp.v1alpha1.Resource. It is the same in a full state and in an increment.
func Frame(e push.Encoded) [2][]byte {
	head := protowire.AppendTag(nil, fieldResources, protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(len(e.Body)))
	return [2][]byte{head, head}
}

// message is an encoded Resources: the shared bytes of its resources and a tail of
// its own.
type message struct{ buffers mem.BufferSlice }

func encode(r *push.Response, collection, nonce string) *message {
	m := &message{make(mem.BufferSlice, 0, 2*len(r.Resources)+1)}
	for _, res := range r.Resources {
		m.buffers = append(m.buffers, mem.SliceBuffer(res.Heads[r.Mode]), mem.SliceBuffer(res.Body))
	}
	m.buffers = append(m.buffers, mem.SliceBuffer(tail(r, collection, nonce)))
	return m
}

// tail is the fields of a response other than its resources.
func tail(r *push.Response, collection, nonce string) []byte {
	const room = 96
	b := make([]byte, 0, room+len(collection))
	var version [2 * len(r.Version)]byte
	b = protowire.AppendTag(b, fieldVersion, protowire.BytesType)
	b = protowire.AppendBytes(b, hex.AppendEncode(version[:0], r.Version[:]))
	b = appendString(b, fieldCollection, collection)
	for _, name := range r.Removed {
		b = appendString(b, fieldRemoved, name)
	}
	b = appendString(b, fieldNonce, nonce)
	if r.Mode == push.Delta {
		b = protowire.AppendTag(b, fieldIncremental, protowire.VarintType)
		b = protowire.AppendVarint(b, 1)
	}
	return b
}

func appendString(b []byte, field protowire.Number, s string) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendString(b, s)
}

// raw is a request as it came. It is measured before it is decoded.
type raw struct{ text []byte }

// codec writes responses as they are, hands out requests as they came, and leaves
// all other messages to gRPC's own.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Marshal implements [encoding.CodecV2].
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if m, ok := v.(*message); ok {
		return m.buffers, nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal implements [encoding.CodecV2].
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if r, ok := v.(*raw); ok {
		r.text = data.Materialize()
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}
