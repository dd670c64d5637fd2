package mcp

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
)

// answer is a Resources message with its resources still encoded: most of them are
// unchanged. All of them share one buffer.
type answer struct {
	collection  string
	resources   [][]byte
	removed     []string
	nonce       string
	incremental bool

	size int   // in bytes
	err  error // why the rest of it could not be read
}

// codec encodes requests as usual, and only splits answers. A codec belongs to one
// stream.
type codec struct {
	most int // resources and removals in an answer
}

// Name implements [encoding.CodecV2].
func (codec) Name() string { return "proto" }

// Marshal implements [encoding.CodecV2].
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	text, err := proto.Marshal(v.(*mcp.RequestResources))
	if err != nil {
		return nil, err
	}
	return mem.BufferSlice{mem.SliceBuffer(text)}, nil
}

// Unmarshal implements [encoding.CodecV2]. A fault of an answer is stored in the
// answer, since the stream goes on.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	c.read(data.Materialize(), v.(*answer))
	return nil
}

// read splits the text of an answer. The answer owns the text from then on.
func (c codec) read(text []byte, a *answer) {
	*a = answer{size: len(text)}
	a.err = a.split(text, c.most)
}

// Field numbers of a Resources message.
const (
	fieldVersion = iota + 1
	fieldCollection
	fieldResources
	fieldRemoved
	fieldNonce
	fieldIncremental
)

// errTooMuch is the error for an answer or a resource that exceeds the memory.
var errTooMuch = &advised{errors.New("more than the memory allows"), "have the source send less, or give Isthmus more memory (GOMEMLIMIT)"}

// split reads the fields of a message. After a fault, only the nonce and the
// collection are read, which a NACK needs.
func (a *answer) split(text []byte, most int) (fault error) {
	for len(text) > 0 {
		number, kind, n := protowire.ConsumeTag(text)
		if n < 0 {
			return errors.Join(fault, fmt.Errorf("the message cannot be decoded: %w", protowire.ParseError(n)))
		}
		text = text[n:]
		n = protowire.ConsumeFieldValue(number, kind, text)
		if n < 0 {
			return errors.Join(fault, fmt.Errorf("field %d of the message cannot be decoded: %w", number, protowire.ParseError(n)))
		}
		if fault == nil && len(a.resources)+len(a.removed) > most {
			a.resources, a.removed, fault = nil, nil, errTooMuch
		}
		if err := a.take(number, kind, text[:n], fault == nil); err != nil {
			fault = errors.Join(fault, err)
		}
		text = text[n:]
	}
	return fault
}

// take stores one field. For an answer with a fault, it stores only fields that a NACK needs.
func (a *answer) take(number protowire.Number, kind protowire.Type, value []byte, good bool) error {
	if number == fieldIncremental && kind == protowire.VarintType {
		v, _ := protowire.ConsumeVarint(value)
		a.incremental = v != 0
		return nil
	}
	if number < fieldVersion || number > fieldIncremental {
		return nil // of a later version of the protocol
	}
	if kind != protowire.BytesType || number == fieldIncremental {
		return fmt.Errorf("field %d of the message has wire type %d, which it cannot have", number, kind)
	}
	v, _ := protowire.ConsumeBytes(value)
	switch int(number) {
	case fieldCollection:
		a.collection = string(v)
	case fieldNonce:
		a.nonce = string(v)
	case fieldResources:
		if good {
			a.resources = append(a.resources, v)
		}
	case fieldRemoved:
		if good {
			a.removed = append(a.removed, string(v))
		}
	}
	return nil
}

// Field numbers of a Resource, and of its Metadata.
const (
	fieldMetadata        = 1
	fieldMetadataName    = 1
	fieldMetadataVersion = 3
)

// identityOf finds name and version of an encoded resource without decoding it. On a
// malformed message it returns an error and the values found so far.
func identityOf(resource []byte) (name, version []byte, err error) {
	err = eachBytes(resource, func(number protowire.Number, metadata []byte) error {
		if number != fieldMetadata {
			return nil
		}
		return eachBytes(metadata, func(number protowire.Number, value []byte) error {
			switch int(number) {
			case fieldMetadataName:
				name = value
			case fieldMetadataVersion:
				version = value
			}
			return nil
		})
	})
	if err == nil && !utf8.Valid(name) {
		return nil, nil, errors.New("metadata.name is not valid UTF-8")
	}
	if !utf8.Valid(version) {
		version = nil // a request cannot name it
	}
	return name, version, err
}

// eachBytes visits the fields of a message that are messages, strings or bytes.
func eachBytes(message []byte, visit func(protowire.Number, []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		n = protowire.ConsumeFieldValue(number, kind, message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message[:n])
			if err := visit(number, value); err != nil {
				return err
			}
		}
		message = message[n:]
	}
	return nil
}

// mostShown bounds the bytes of a peer's text that are kept for people.
const mostShown = 1 << 10

// cut truncates a text to mostShown bytes of valid UTF-8, as messages need it.
func cut(text string) string { return strings.ToValidUTF8(text[:min(len(text), mostShown)], "") }
