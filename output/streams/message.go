package streams

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that everything but responses goes through
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/isthmus-mesh/isthmus/push/session"
)

// Message is an encoded response: the shared bytes of its resources and a tail of
// its own.
type Message struct{ buffers mem.BufferSlice }

// Encode lays out a response; tail is its encoded fields other than its resources.
func Encode(r *session.Response, tail []byte) *Message {
	m := &Message{make(mem.BufferSlice, 0, 2*len(r.Resources)+1)}
	for _, res := range r.Resources {
		m.buffers = append(m.buffers, mem.SliceBuffer(res.Heads[r.Mode]), mem.SliceBuffer(res.Body))
		if res.Tail == nil {
			continue
		}
		for piece := range res.Tail.All() {
			m.buffers = append(m.buffers, mem.SliceBuffer(piece))
		}
	}
	m.buffers = append(m.buffers, mem.SliceBuffer(tail))
	return m
}

// Encoded returns a message that is encoded already. Its text must not be written to again.
func Encoded(text []byte) *Message { return &Message{mem.BufferSlice{mem.SliceBuffer(text)}} }

// AppendString appends a field of a message that is a string.
func AppendString(b []byte, field protowire.Number, s string) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendString(b, s)
}

// Raw is a message as received, to be measured before it is decoded.
type Raw struct{ Text []byte }

// Codec writes responses in their encoded form, returns raw messages as received, and
// leaves all others to gRPC's codec.
type Codec struct{ encoding.CodecV2 }

// NewCodec returns the codec of the streams of either direction.
func NewCodec() Codec { return Codec{encoding.GetCodecV2("proto")} }

// Marshal implements [encoding.CodecV2].
func (c Codec) Marshal(v any) (mem.BufferSlice, error) {
	if m, ok := v.(*Message); ok {
		return m.buffers, nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal implements [encoding.CodecV2].
func (c Codec) Unmarshal(data mem.BufferSlice, v any) error {
	if r, ok := v.(*Raw); ok {
		r.Text = data.Materialize()
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}
