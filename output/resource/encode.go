package resource

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	mcpapi "istio.io/api/mcp/v1alpha1"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// translation is part of every version. It is changed when the meaning of the same
// bytes changes; different bytes have a different version anyway.
const translation = "resource/1"

const typePrefix = "type.googleapis.com/"

// object is one resource of one revision.
type object struct {
	slot     slot
	revision string // of Istio, that it is for
	options  Options
	source   maker
}

// slot tells a resource from all others through all its revisions.
type slot struct {
	content content
	name    string
}

// maker has what a resource is made of.
type maker interface {
	make() made
}

// made is what a resource says.
type made struct {
	meta    model.Meta
	paths   istio.Paths
	typeURL string
	body    []byte
}

// Slot implements [world.Subject].
func (o *object) Slot() any { return o.slot }

// Encode implements [world.Subject]. The version is that of the resource as it came here, without
// the name of this Isthmus in its path: every replica gives it, whatever its name is.
func (o *object) Encode() world.Encoded {
	m := o.source.make()
	metadata := &mcpapi.Metadata{Name: o.slot.name, Labels: m.meta.Labels.Map(), Annotations: m.meta.Annotations.Map()}
	setPath(metadata, m.paths.Text(""))
	if !m.meta.Created.IsZero() {
		metadata.CreateTime = timestamppb.New(m.meta.Created)
	}
	version := world.VersionOf([]byte(translation), marshal(o.slot.name, metadata), []byte(m.typeURL), m.body)
	metadata.Version = version.String()
	setPath(metadata, m.paths.Text(o.options.Self))
	return world.Encoded{Name: o.slot.name, Version: version, Body: o.write(marshal(o.slot.name, metadata), m)}
}

// setPath sets the annotation that says how a resource came; an empty one is none.
func setPath(m *mcpapi.Metadata, text string) {
	if text == "" {
		delete(m.Annotations, istio.AnnotationPath)
		return
	}
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[istio.AnnotationPath] = text
}

// Fields of istio.mcp.v1alpha1.Resource and of google.protobuf.Any.
const (
	fieldMetadata = 1
	fieldBody     = 2
	fieldTypeURL  = 1
	fieldValue    = 2
)

const resourceURL = typePrefix + "istio.mcp.v1alpha1.Resource"

// write puts a resource together in one buffer: bodies may be large.
func (o *object) write(metadata []byte, m made) []byte {
	inner := field(len(m.typeURL)) + field(len(m.body))
	size := field(len(metadata)) + field(inner)
	b := make([]byte, 0, size+len(resourceURL)+16)
	if o.options.Wrapped {
		b = appendBytes(b, fieldTypeURL, []byte(resourceURL))
		b = appendHead(b, fieldValue, size)
	}
	b = appendBytes(b, fieldMetadata, metadata)
	b = appendHead(b, fieldBody, inner)
	b = appendBytes(b, fieldTypeURL, []byte(m.typeURL))
	return appendBytes(b, fieldValue, m.body)
}

// field is the size of a field whose number is below 16.
func field(size int) int { return 1 + protowire.SizeBytes(size) }

func appendHead(b []byte, number protowire.Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.BytesType), uint64(size)) //nolint:gosec // not negative
}

func appendBytes(b []byte, number protowire.Number, value []byte) []byte {
	return append(appendHead(b, number, len(value)), value...)
}

// marshal is deterministic, so that replicas of one build agree on versions.
func marshal(name string, m proto.Message) []byte {
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("resource: %s cannot be encoded: %v", name, err))
	}
	return text
}

// madeOf returns a resource whose body is a message.
func madeOf(name string, meta model.Meta, spec proto.Message, paths istio.Paths) made {
	return made{meta, paths, typePrefix + string(spec.ProtoReflect().Descriptor().FullName()), marshal(name, spec)}
}
