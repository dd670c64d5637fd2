package mcp

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	mcpapi "istio.io/api/mcp/v1alpha1"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/model"
)

// read decodes a resource into an object or a rejection. Read fails if nothing can be
// decoded; the resource is rejected then, too.
func (r *held) read(c *collection, name string, text []byte, b bounds, self string) (undecoded error) {
	var resource mcpapi.Resource
	if err := proto.Unmarshal(text, &resource); err != nil {
		r.reject(c, name, "", fmt.Sprintf("cannot be decoded: %v", err))
		return err
	}
	if c.kind.RecordKind().Understood() {
		fields, ok := mcp.CountFields(resource.GetBody().GetValue(), b.fields)
		if !ok {
			r.reject(c, name, "body", fmt.Sprintf("it has more than %d fields, which is %s", b.fields, forOperator(errTooMuch)))
			return nil
		}
		r.size += fields * perField
	}
	reading := istio.FromResource(c.kind, &resource)
	r.echoes = reading.WithoutEchoes(self) > 0
	switch {
	case reading.Echoed:
		r.passedOn = reading.Path.Last() != self
	case reading.Ignored:
	case reading.Valid():
		if len(reading.Rejected) > 0 {
			r.rejectReading(c, name, &reading)
			reading.Rejected = nil
		}
		r.object = &reading
	default:
		r.rejectReading(c, name, &reading)
	}
	if reading.Undecoded {
		return errors.New(reading.Problems[0].Reason)
	}
	return nil
}

func (r *held) rejectReading(c *collection, name string, reading *istio.Reading) {
	f := reading.Rejection(placeOf(c.name, name), c.name)
	f.Ref, f.Object = refOf(c.kind, name), cmp.Or(f.Object, objectOf(c.kind, name))
	r.rejected = &f
}

func (r *held) reject(c *collection, name, field, reason string) {
	r.rejected = &model.Rejection{
		Ref: refOf(c.kind, name), Place: placeOf(c.name, name), Object: objectOf(c.kind, name), Where: c.name, Field: field, Reason: reason,
	}
}

func objectOf(kind istio.Definition, name string) string { return kind.Name + " " + cut(name) }

// refOf returns the ref of the record that a resource becomes, or would become. A
// name that is no object's serves as the whole name of the ref.
func refOf(kind istio.Definition, name string) model.Ref {
	namespace, rest, ok := strings.Cut(name, "/")
	if !ok {
		namespace, rest = "", name
	}
	return model.Ref{Kind: kind.RecordKind(), Key: model.Key{Namespace: namespace, Name: cmp.Or(rest, name)}}
}

// nameless counts the resources of an answer without a name.
type nameless struct {
	count int
	first int
	err   error // of the first
}

func (n *nameless) add(at int, err error) {
	if n.count++; n.count == 1 {
		n.first, n.err = at, fmt.Errorf("resource %d: metadata.name is missing", at)
		if err != nil {
			n.err = fmt.Errorf("resource %d: it cannot be decoded: %w", at, err)
		}
	}
}

// of returns the held resource that stands for all of them in a collection; nil if
// there are none.
func (n *nameless) of(c *collection) *held {
	if n.count == 0 {
		return nil
	}
	r := &held{size: perResource}
	text := n.err.Error()
	if n.count > 1 {
		text = fmt.Sprintf("%d resources have no name, such as %s", n.count, text)
	}
	r.reject(c, "", "metadata.name", text+"; what seems to be missing beside it is kept")
	r.rejected.Object = c.kind.Name + " without a name"
	r.rejected.Ref.Name = r.rejected.Object
	return r
}
