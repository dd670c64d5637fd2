package xds

import (
	"bytes"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/internal/mcp"
)

// resource is one of an answer, still encoded.
type resource struct {
	name    string // empty if nothing says what it is
	version string // of the delta variant; may be empty
	body    []byte // an encoded Resource of MCP
	broken  string // why it is none; empty if it is one as far as one can see
	fields  int    // of the object, where a record is made of them; counted once it is held
}

func (r resource) same(o resource) bool {
	return r.version == o.version && r.broken == o.broken && bytes.Equal(r.body, o.body)
}

// perField is what a field of a message takes while it is read, and fieldResources has
// the resources, in either variant.
const (
	perField       = 100
	fieldResources = 2
)

// What a resource, and a field of its object, take beside their text.
const (
	perResource = 512
	perRecorded = 200
)

// size is what one takes, about, with the record that is made of it: its text is in
// memory twice, as it came and in the record.
func (r resource) size() int64 {
	if r.name == "" {
		return 0
	}
	return int64(perResource + 2*len(r.name) + len(r.version) + 2*len(r.body) + len(r.broken) + r.fields*perRecorded)
}

// count counts the fields that a record is made of.
func (r *resource) count(kind mcp.Kind) {
	if r.fields = 0; istio.RecordKind(kind.Name).Understood() {
		r.fields, _ = fieldsOf(r.body)
	}
}

// named is a resource of the delta variant.
func named(name, version string, body *anypb.Any) resource {
	r := resource{name: name, version: version}
	r.set(body)
	return r
}

// unnamed is a resource of the state-of-the-world variant, which says its name inside.
func unnamed(body *anypb.Any) (r resource) {
	if r.set(body); r.broken == "" {
		r.name, r.broken = nameIn(r.body)
	}
	return r
}

// set takes the body, unless it is something else.
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

// nameIn reads the name alone, so that what is held already needs no decoding.
func nameIn(body []byte) (name, broken string) {
	metadata, ok := lastField(body, fieldMetadata)
	if ok {
		if text, ok := lastField(metadata, fieldName); ok {
			return string(text), ""
		}
	}
	return "", "it cannot be decoded, or has no metadata.name: send namespace/name"
}

// lastField returns a field of bytes: the last, as a decoder takes it.
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

// bodyField is where a problem is that lets nothing of a resource be decoded.
const bodyField = "body"

// read decodes a resource of a kind.
func (r resource) read(kind mcp.Kind) istio.Reading {
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
	return istio.FromResource(kind.Name, &m)
}

// fieldsOf counts the fields of the object in an encoded resource; it is not ok if
// there are too many.
func fieldsOf(body []byte) (n int, ok bool) {
	object, _ := lastField(body, fieldBody)
	spec, _ := lastField(object, fieldValue)
	return mcp.CountFields(spec, mcp.MostFields)
}

// emptyReading says which record a name stands for, and nothing of it.
func emptyReading(kind mcp.Kind, name string) istio.Reading {
	out := istio.FromResource(kind.Name, &mcpapi.Resource{Metadata: &mcpapi.Metadata{Name: name}})
	return istio.Reading{Kind: kind.Name, Ref: out.Ref}
}

// decodes reports whether anything of a reading could be decoded, valid or not.
func decodes(r istio.Reading) bool {
	return !r.Undecoded
}
