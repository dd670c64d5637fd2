package istio

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/model"
)

// FromResource reads an object of a kind from MCP and MCP-over-xDS. An object of a kind
// that is not read becomes a record that is carried byte for byte, if Istio can decode it.
//
// An API server's rules beside Istio's own do not apply: the name may have upper case, and
// a ServiceEntry any number of endpoints. Bad parts of a ServiceEntry's endpoints are left
// out, and the rest is read: see [Reading.Rejected].
func FromResource(of Definition, r *mcpapi.Resource) Reading {
	out := Reading{Kind: of.Name}
	namespace, name, ok := splitName(r.GetMetadata().GetName(), !of.IsRead())
	if !ok {
		out.Problems = []Problem{{Field: "metadata.name", Reason: fmt.Sprintf(
			"%q names no object: write namespace/name", r.GetMetadata().GetName())}}
		return out
	}
	meta := carriedMeta(r.GetMetadata())
	annotations := r.GetMetadata().GetAnnotations()
	out.Ref = model.Ref{Kind: of.RecordKind(), Key: model.Key{Namespace: namespace, Name: name}}
	if !of.IsRead() {
		if reason := undecodable(r, of); reason != "" {
			out.Undecoded, out.Problems = true, []Problem{{Field: "body", Reason: reason}}
			return out
		}
		paths, problem := pathsOf(annotations, nil)
		if problem != nil {
			out.Problems = []Problem{*problem}
			return out
		}
		out.Path, out.Spec = paths.Object, model.Opaque{Meta: meta, Type: r.GetBody().GetTypeUrl(), Content: string(r.GetBody().GetValue())}
		return out
	}
	message := of.message()
	if reason := decodeBody(r, of.Name, message); reason != "" {
		out.Undecoded, out.Problems = true, []Problem{{Field: "body", Reason: reason}}
		return out
	}
	entry, _ := message.(*networking.ServiceEntry)
	paths, problem := pathsOf(annotations, entry)
	ports, endpoints := entry.GetPorts(), entry.GetEndpoints()
	read := fromRegistry(Object{Namespace: namespace, Name: name, Meta: meta, Spec: message})
	if !read.Valid() {
		return read
	}
	if problem != nil {
		return Reading{Kind: read.Kind, Ref: read.Ref, Problems: []Problem{*problem}}
	}
	paths.Ports = pathsLeft(paths.Ports, ports, entry.GetPorts())
	paths.Endpoints = pathsLeft(paths.Endpoints, endpoints, entry.GetEndpoints())
	read.takePaths(paths, entry)
	if entry != nil {
		addNotReady(&read, entry, annotations[notReadyEndpoints], paths.NotReady)
	}
	return read
}

// splitName splits the name of a resource. A kind without namespaces, which is never read,
// has no namespace, or an empty one.
func splitName(full string, global bool) (namespace, name string, ok bool) {
	namespace, name, ok = strings.Cut(full, "/")
	if !ok && global {
		namespace, name, ok = "", full, true
	}
	return namespace, name, ok && (namespace != "" || global) && name != "" && !strings.Contains(name, "/")
}

// isCarriedName reports whether a name is valid for an object from outside an API server.
func isCarriedName(name string) bool {
	return len(name) <= 253 && !strings.ContainsFunc(name, func(c rune) bool {
		return c == unicode.ReplacementChar || unicode.IsSpace(c) || !unicode.IsPrint(c)
	})
}

// carriedMeta returns the metadata of a resource. The versions and endpoints in a synthetic
// ServiceEntry's annotations are excluded: otherwise each change of an endpoint would
// change the service. So is the path.
func carriedMeta(m *mcpapi.Metadata) model.Meta {
	annotations := m.GetAnnotations()
	for _, own := range [...]string{serviceVersion, endpointsVersion, notReadyEndpoints, AnnotationPath} {
		if _, has := annotations[own]; has {
			annotations = without(annotations, own)
		}
	}
	meta := model.Meta{Labels: model.MapOf(m.GetLabels()), Annotations: model.MapOf(annotations)}
	if created := m.GetCreateTime(); created.IsValid() && created.AsTime().Unix() > 0 {
		meta.Created = created.AsTime()
	}
	return meta
}

func without(m map[string]string, key string) map[string]string {
	rest := make(map[string]string, len(m))
	for k, v := range m {
		if k != key {
			rest[k] = v
		}
	}
	return rest
}

// decodeBody decodes the body of a resource, or returns why it cannot.
func decodeBody(r *mcpapi.Resource, kind string, message proto.Message) (reason string) {
	url := r.GetBody().GetTypeUrl()
	if is := protoreflect.FullName(url[strings.LastIndexByte(url, '/')+1:]); !isMessageOf(is, message) {
		return fmt.Sprintf("%q is not the type of %s: use %s", url, kind, message.ProtoReflect().Descriptor().FullName())
	}
	if err := proto.Unmarshal(r.GetBody().GetValue(), message); err != nil {
		return fmt.Sprintf("cannot be decoded: %v", err)
	}
	return ""
}

// isMessageOf reports whether a name is the name of a message in some version of its
// package. All versions have one schema.
func isMessageOf(name protoreflect.FullName, message proto.Message) bool {
	known := message.ProtoReflect().Descriptor().FullName()
	return name == known || name.Name() == known.Name() && slices.ContainsFunc(versions[Group], func(v string) bool {
		return name.Parent() == "istio.networking."+protoreflect.FullName(v)
	})
}
