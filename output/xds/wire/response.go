package wire

import (
	"encoding/hex"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
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

// Frame returns the bytes before the body of a resource, an encoded Any, in either variant.
// The body is the last field of its message, so that its bytes need not be copied.
func Frame(e world.Encoded) [2][]byte {
	if e.Framed {
		return [2][]byte{}
	}
	whole := protowire.AppendTag(nil, fieldResources, protowire.BytesType)
	whole = protowire.AppendVarint(whole, uint64(e.Size()))

	var inner []byte
	inner = streams.AppendString(inner, fieldResourceVersion, e.Version.String())
	inner = streams.AppendString(inner, fieldResourceName, e.Name)
	inner = protowire.AppendTag(inner, fieldResourceBody, protowire.BytesType)
	inner = protowire.AppendVarint(inner, uint64(e.Size()))
	delta := protowire.AppendTag(nil, fieldResources, protowire.BytesType)
	delta = protowire.AppendVarint(delta, uint64(len(inner)+e.Size()))
	return [2][]byte{world.WholeState: whole, world.Delta: append(delta, inner...)}
}

// ControlPlane returns the encoded ControlPlane of a name, for [Encode].
func ControlPlane(name string) []byte { return streams.AppendString(nil, fieldControlPlaneID, name) }

// markOf returns the suffix of a response's version, for a client that requested marks.
func markOf(r *session.Response) string {
	switch {
	case r.Ends:
		return mcp.FirstStateComplete
	case r.First:
		return mcp.FirstStatePartial
	default:
		return ""
	}
}

// tailRoom is the bytes of a tail beside the type's URL and the control plane: version,
// nonce, and the tag of each field.
const tailRoom = 80

// Encode lays out a response. controlPlane is the encoded ControlPlane.
func Encode(r *session.Response, typeURL, nonce string, controlPlane []byte) *streams.Message {
	tail := make([]byte, 0, tailRoom+len(typeURL)+len(controlPlane))
	var room [2*len(r.Version) + len(mcp.FirstStateComplete)]byte
	if typeURL != MemberURL || r.First { // its messages are small and many, and clients ignore the version
		tail = protowire.AppendTag(tail, fieldVersion, protowire.BytesType)
		tail = protowire.AppendBytes(tail, append(hex.AppendEncode(room[:0], r.Version[:]), markOf(r)...))
	}
	tail = streams.AppendString(tail, fieldTypeURL, typeURL)
	if r.Mode == world.WholeState {
		tail = streams.AppendString(tail, fieldSotwNonce, nonce)
		tail = protowire.AppendTag(tail, fieldSotwControlPlane, protowire.BytesType)
	} else {
		tail = streams.AppendString(tail, fieldDeltaNonce, nonce)
		for _, name := range r.Removed {
			tail = streams.AppendString(tail, fieldDeltaRemoved, name)
		}
		tail = protowire.AppendTag(tail, fieldDeltaControlPlane, protowire.BytesType)
	}
	tail = protowire.AppendBytes(tail, controlPlane)
	return streams.Encode(r, tail)
}
