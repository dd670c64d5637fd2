package xds

import (
	"encoding/hex"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that everything but responses goes through
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/isthmus-mesh/isthmus/push"
)

// Field numbers of envoy.service.discovery.v3: DiscoveryResponse,
// DeltaDiscoveryResponse and Resource.
const (
	fieldVersion   = 1 // version_info, system_version_info
	fieldResources = 2
	fieldTypeURL   = 4

	fieldSotwNonce        = 5
	fieldSotwControlPlane = 6

	fieldDeltaNonce        = 5
	fieldDeltaRemoved      = 6
	fieldDeltaControlPlane = 7

	fieldResourceVersion = 1
	fieldResourceBody    = 2
	fieldResourceName    = 3

	fieldControlPlaneID = 1
)

// Frame returns what goes before the body of a resource, an encoded Any, in
// either variant: the body is the last field of what surrounds it, so that its
// bytes need not be copied.
func Frame(e push.Encoded) [2][]byte {
	whole := protowire.AppendTag(nil, fieldResources, protowire.BytesType)
	whole = protowire.AppendVarint(whole, uint64(len(e.Body)))

	var inner []byte
	inner = appendString(inner, fieldResourceVersion, e.Version.String())
	inner = appendString(inner, fieldResourceName, e.Name)
	inner = protowire.AppendTag(inner, fieldResourceBody, protowire.BytesType)
	inner = protowire.AppendVarint(inner, uint64(len(e.Body)))
	delta := protowire.AppendTag(nil, fieldResources, protowire.BytesType)
	delta = protowire.AppendVarint(delta, uint64(len(inner)+len(e.Body)))
	return [2][]byte{push.WholeState: whole, push.Delta: append(delta, inner...)}
}

func appendString(b []byte, field protowire.Number, s string) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendString(b, s)
}

// message is an encoded response: the shared bytes of its resources and a tail
// of its own.
type message struct{ buffers mem.BufferSlice }

// tailRoom is what a tail takes beside the type's URL and the control plane:
// version, nonce, and what goes before each field.
const tailRoom = 80

// encode lays out a response. controlPlane is the encoded ControlPlane.
func encode(r *push.Response, typeURL, nonce string, controlPlane []byte) *message {
	m := &message{make(mem.BufferSlice, 0, 2*len(r.Resources)+1)}
	for _, res := range r.Resources {
		m.buffers = append(m.buffers, mem.SliceBuffer(res.Heads[r.Mode]), mem.SliceBuffer(res.Body))
	}
	tail := make([]byte, 0, tailRoom+len(typeURL)+len(controlPlane))
	var room [2 * len(r.Version)]byte
	tail = protowire.AppendTag(tail, fieldVersion, protowire.BytesType)
	tail = protowire.AppendBytes(tail, hex.AppendEncode(room[:0], r.Version[:]))
	tail = appendString(tail, fieldTypeURL, typeURL)
	if r.Mode == push.WholeState {
		tail = appendString(tail, fieldSotwNonce, nonce)
		tail = protowire.AppendTag(tail, fieldSotwControlPlane, protowire.BytesType)
	} else {
		tail = appendString(tail, fieldDeltaNonce, nonce)
		for _, name := range r.Removed {
			tail = appendString(tail, fieldDeltaRemoved, name)
		}
		tail = protowire.AppendTag(tail, fieldDeltaControlPlane, protowire.BytesType)
	}
	tail = protowire.AppendBytes(tail, controlPlane)
	m.buffers = append(m.buffers, mem.SliceBuffer(tail))
	return m
}

// codec writes responses as they are and leaves all other messages to gRPC's own.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Marshal implements [encoding.CodecV2].
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if m, ok := v.(*message); ok {
		return m.buffers, nil
	}
	return c.CodecV2.Marshal(v)
}
