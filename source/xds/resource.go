package xds

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/internal/mcp"
)

// resource is a resource of an answer, still encoded.
type resource struct {
	name    string // empty if it cannot be read
	version string // of the delta variant; may be empty
	body    []byte // an encoded Resource of MCP
	broken  string // why it is invalid; empty if no fault is known yet
	fields  int    // of the object, if a record is made of it; counted once it is held
}

func (r resource) same(o resource) bool {
	return r.version == o.version && r.broken == o.broken && bytes.Equal(r.body, o.body)
}

// perField is the memory in bytes that a field of a message takes while it is read.
// fieldResources is the number of the field with the resources, in either variant.
const (
	perField       = 100
	fieldResources = 2
)

// Overhead in bytes of a resource, and of a field of its object, beside their text.
const (
	perResource = 512
	perRecorded = 200
)

// size returns the approximate bytes of a resource with the record made of it. Its
// text is in memory twice: as received and in the record.
func (r resource) size() int64 {
	if r.name == "" {
		return 0
	}
	return int64(perResource + 2*len(r.name) + len(r.version) + 2*len(r.body) + len(r.broken) + r.fields*perRecorded)
}

// count counts the fields that a record is made of.
func (r *resource) count(kind istio.Definition) {
	if r.fields = 0; kind.RecordKind().Understood() {
		r.fields, _ = fieldsOf(r.body)
	}
}

// named returns a resource of the delta variant.
func named(name, version string, body *anypb.Any) resource {
	r := resource{name: name, version: version}
	r.set(body)
	return r
}

// unnamed returns a resource of the state-of-the-world variant, with its name in the body.
func unnamed(body *anypb.Any) (r resource) {
	if r.set(body); r.broken == "" {
		r.name, r.broken = nameIn(r.body)
	}
	return r
}

// set stores the body, unless it has another type.
func (r *resource) set(body *anypb.Any) {
	const want = "istio.mcp.v1alpha1.Resource"
	url := body.GetTypeUrl()
	if url[strings.LastIndexByte(url, '/')+1:] != want {
		r.broken = fmt.Sprintf("%q is not the type of a resource: send %s", url, want)
		return
	}
	r.body = body.GetValue()
}

// Fields of Resource, of Metadata in it, and of Any.
const (
	fieldMetadata = 1
	fieldBody     = 2
	fieldName     = 1
	fieldValue    = 2
)

// nameIn reads the name alone, so that an unchanged resource needs no decoding.
func nameIn(body []byte) (name, broken string) {
	metadata, ok := lastField(body, fieldMetadata)
	if ok {
		if text, ok := lastField(metadata, fieldName); ok {
			if !utf8.Valid(text) {
				return "", "its metadata.name is not valid UTF-8: send namespace/name"
			}
			return string(text), ""
		}
	}
	return "", "it cannot be decoded, or has no metadata.name: send namespace/name"
}

// lastField returns the last bytes field of a number, as a decoder takes it.
func lastField(message []byte, want protowire.Number) (value []byte, ok bool) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil, false
		}
		message = message[n:]
		size := protowire.ConsumeFieldValue(number, kind, message)
		if size < 0 {
			return nil, false
		}
		if number == want && kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(message)
			ok = true
		}
		message = message[size:]
	}
	return value, ok
}

// bodyField is the field path of a problem that makes a whole resource undecodable.
const bodyField = "body"

// read decodes a resource of a kind.
func (r resource) read(kind istio.Definition) istio.Reading {
	wrong := func(field, reason string) istio.Reading {
		out := emptyReading(kind, r.name)
		out.Problems, out.Undecoded = []istio.Problem{{Field: field, Reason: reason}}, field == bodyField
		return out
	}
	if r.broken != "" {
		return wrong(bodyField, r.broken)
	}
	var m mcpapi.Resource
	if _, ok := fieldsOf(r.body); !ok {
		return wrong("spec", fmt.Sprintf("it has more than %d fields, which nothing that is meant has: make it several objects", mcp.MostFields))
	}
	if err := proto.Unmarshal(r.body, &m); err != nil {
		return wrong(bodyField, fmt.Sprintf("cannot be decoded: %v", err))
	}
	if name := m.GetMetadata().GetName(); name != r.name {
		return wrong("metadata.name", fmt.Sprintf("%q is not the name that the resource is sent under, %q: send it under its own", name, r.name))
	}
	return istio.FromResource(kind, &m)
}

// fieldsOf counts the fields of the object in an encoded resource; ok is false if
// there are too many.
func fieldsOf(body []byte) (n int, ok bool) {
	object, _ := lastField(body, fieldBody)
	spec, _ := lastField(object, fieldValue)
	return mcp.CountFields(spec, mcp.MostFields)
}

// emptyReading returns the reading of a name with its record's ref and no content.
func emptyReading(kind istio.Definition, name string) istio.Reading {
	out := istio.FromResource(kind, &mcpapi.Resource{Metadata: &mcpapi.Metadata{Name: name}})
	return istio.Reading{Kind: kind.Name, Ref: out.Ref}
}
