package wire

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// Names of the types in the protocol.
const (
	ClusterURL     = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	EndpointURL    = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	ListenerURL    = "type.googleapis.com/envoy.config.listener.v3.Listener"
	RouteURL       = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	RuntimeURL     = "type.googleapis.com/envoy.service.runtime.v3.Runtime"
	MemberURL      = "type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint"
	VirtualHostURL = "type.googleapis.com/envoy.config.route.v3.VirtualHost"
	SecretURL      = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
)

// Translator is part of every version. It changes when the meaning of the same bytes
// changes; different bytes have different versions anyway.
const Translator = "envoy/1"

// Fields of google.protobuf.Any.
const (
	anyTypeURL = 1
	anyValue   = 2
)

// Any encodes a resource as an Any. Marshalling is deterministic, so that replicas of one
// build agree on the version.
func Any(name, url string, m proto.Message) []byte {
	size := proto.Size(m)
	body := make([]byte, 0, anyHeadSize(url, size)+size)
	body, err := proto.MarshalOptions{Deterministic: true, UseCachedSize: true}.MarshalAppend(appendAnyHead(body, url, size), m)
	if err != nil {
		panic(invariant(name, err))
	}
	return body
}

// AnyHead encodes the begin of a resource, up to the given message. The caller appends the
// rest, of so many bytes.
func AnyHead(name, url string, m proto.Message, rest int) (body, head []byte) {
	head, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(invariant(name, err))
	}
	size := len(head) + rest
	body = make([]byte, 0, anyHeadSize(url, size)+len(head))
	return append(appendAnyHead(body, url, size), head...), head
}

func appendAnyHead(b []byte, url string, size int) []byte {
	return appendHead(appendString(b, anyTypeURL, url), anyValue, size)
}

func anyHeadSize(url string, size int) int { return sizeBytes(len(url)) + sizeBytes(size) - size }

// packed returns a message as the configuration of an extension.
func packed(m proto.Message) *anypb.Any {
	a := &anypb.Any{}
	if err := anypb.MarshalFrom(a, m, proto.MarshalOptions{Deterministic: true}); err != nil {
		panic(invariant(string(m.ProtoReflect().Descriptor().FullName()), err))
	}
	return a
}

// named is a message with a name.
type named interface {
	proto.Message
	GetName() string
}

// appendMessage encodes a message as a field of another message.
func appendMessage(b []byte, field protowire.Number, m named) []byte {
	size := proto.Size(m)
	b = slices.Grow(b, protowire.SizeTag(field)+protowire.SizeBytes(size))
	b = protowire.AppendTag(b, field, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size)) //nolint:gosec // it is not negative
	b, err := proto.MarshalOptions{Deterministic: true, UseCachedSize: true}.MarshalAppend(b, m)
	if err != nil {
		panic(invariant(m.GetName(), err))
	}
	return b
}

// invariant explains an impossible failure: marshalling fails only on text that is not
// UTF-8, and earlier checks reject such text.
func invariant(name string, err error) string {
	return fmt.Sprintf("envoy: %s cannot be encoded: %v", name, err)
}

// sizeBytes is the size of a message or string field of n bytes.
func sizeBytes(n int) int { return tagSize + protowire.SizeBytes(n) }

// sizeString is the size of a string field, which is absent if it is empty.
func sizeString(s string) int {
	if s == "" {
		return 0
	}
	return sizeBytes(len(s))
}

// sizeWrapped is the size of a UInt32Value field with a value that is not 0.
func sizeWrapped(v uint64) int { return sizeBytes(tagSize + protowire.SizeVarint(v)) }

func appendHead(b []byte, field byte, size int) []byte {
	if size < 1<<7 { // nearly always: one byte of length, and no call
		return append(b, bytesTag(field), byte(size))
	}
	return protowire.AppendVarint(append(b, bytesTag(field)), uint64(size))
}

func appendString(b []byte, field byte, s string) []byte {
	if s == "" {
		return b
	}
	return append(appendHead(b, field, len(s)), s...)
}

func appendWrapped(b []byte, field byte, v uint64) []byte {
	b = appendHead(b, field, tagSize+protowire.SizeVarint(v))
	return appendVarint(b, wrappedValue, v)
}

func appendVarint(b []byte, field byte, v uint64) []byte {
	return protowire.AppendVarint(append(b, varintTag(field)), v)
}

func bytesTag(field byte) byte  { return field<<3 | byte(protowire.BytesType) }
func varintTag(field byte) byte { return field<<3 | byte(protowire.VarintType) }
