package istio

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	mcpapi "istio.io/api/mcp/v1alpha1"

	"github.com/isthmus-mesh/isthmus/model"
)

// FromResource reads an object of a kind as MCP and MCP-over-xDS carry it. One
// of a kind that is not read becomes a record that is carried byte for byte.
func FromResource(kind string, r *mcpapi.Resource) Reading {
	out := Reading{Kind: kind}
	namespace, name, ok := strings.Cut(r.GetMetadata().GetName(), "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		out.Problems = []Problem{{Field: "metadata.name", Reason: fmt.Sprintf(
			"%q names no object: write namespace/name", r.GetMetadata().GetName())}}
		return out
	}
	meta := model.Meta{Labels: model.MapOf(r.GetMetadata().GetLabels()), Annotations: model.MapOf(r.GetMetadata().GetAnnotations())}
	if created := r.GetMetadata().GetCreateTime(); created.IsValid() && created.AsTime().Unix() > 0 {
		meta.Created = created.AsTime()
	}
	message := Kind(kind).message()
	if message == nil {
		out.Ref = model.Ref{Kind: model.Kind(kind), Key: model.Key{Namespace: namespace, Name: name}}
		out.Spec = model.Opaque{Meta: meta, Type: r.GetBody().GetTypeUrl(), Content: string(r.GetBody().GetValue())}
		return out
	}
	out.Ref = model.Ref{Kind: Kind(kind).record(), Key: model.Key{Namespace: namespace, Name: name}}
	body := r.GetBody()
	if is := protoreflect.FullName(body.GetTypeUrl()[strings.LastIndexByte(body.GetTypeUrl(), '/')+1:]); !isMessageOf(is, message) {
		out.Problems = []Problem{{Field: "body", Reason: fmt.Sprintf(
			"%q is not the type of %s: use %s", body.GetTypeUrl(), kind, message.ProtoReflect().Descriptor().FullName())}}
		return out
	}
	if err := proto.Unmarshal(body.GetValue(), message); err != nil {
		out.Problems = []Problem{{Field: "body", Reason: fmt.Sprintf("cannot be decoded: %v", err)}}
		return out
	}
	return FromMessage(Object{Namespace: namespace, Name: name, Meta: meta, Spec: message})
}

// isMessageOf reports whether a name is that of a message in some version of its
// package. All of them have one schema.
func isMessageOf(name protoreflect.FullName, message proto.Message) bool {
	known := message.ProtoReflect().Descriptor().FullName()
	return name == known || name.Name() == known.Name() && slices.ContainsFunc(versions[:], func(v string) bool {
		return name.Parent() == "istio.networking."+protoreflect.FullName(v)
	})
}
