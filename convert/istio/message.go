package istio

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
	"github.com/isthmus-mesh/isthmus/model"
)

// fields collects the entries of a map.
type fields struct {
	names  []string
	values []yamlpos.Node
}

func (f *fields) put(name string, value yamlpos.Node) {
	f.names, f.values = append(f.names, name), append(f.values, value)
}

func (f *fields) text(name, value string) {
	if value != "" {
		f.put(name, yamlpos.NewScalar(yamlpos.String, value))
	}
}

func (f *fields) node() yamlpos.Node { return yamlpos.NewMap(f.names, f.values) }

// nodeOf converts an object into the node of an equal document. Values that a message
// cannot distinguish from absent are absent.
func nodeOf(o Object) yamlpos.Node {
	var document, metadata fields
	metadata.text("name", o.Name)
	metadata.text("namespace", o.Namespace)
	metadata.labels("labels", o.Meta.Labels)
	metadata.labels("annotations", o.Meta.Annotations)
	if !o.Meta.Created.IsZero() {
		metadata.text("creationTimestamp", o.Meta.Created.UTC().Format(time.RFC3339Nano))
	}
	document.text("apiVersion", Group+"/"+Version)
	document.text("kind", string(o.Kind()))
	document.put("metadata", metadata.node())
	document.put("spec", messageNode(o.Spec.ProtoReflect()))
	return document.node()
}

func (f *fields) labels(name string, labels model.Labels) {
	if labels.Len() == 0 {
		return
	}
	var entries fields
	for key, value := range labels.All() {
		entries.put(key, yamlpos.NewScalar(yamlpos.String, value))
	}
	f.put(name, entries.node())
}

// messageNode returns the content of a message; null for a nil one.
func messageNode(m protoreflect.Message) yamlpos.Node {
	if !m.IsValid() {
		return yamlpos.Node{}
	}
	switch known := m.Interface().(type) {
	case *durationpb.Duration:
		return yamlpos.NewScalar(yamlpos.String, durationText(known))
	case *wrapperspb.BoolValue:
		return yamlpos.NewScalar(yamlpos.Bool, strconv.FormatBool(known.GetValue()))
	}
	var out fields
	all := m.Descriptor().Fields()
	for i := range all.Len() {
		if fd := all.Get(i); m.Has(fd) {
			out.put(fd.JSONName(), fieldNode(fd, m.Get(fd)))
		}
	}
	return out.node()
}

func fieldNode(fd protoreflect.FieldDescriptor, value protoreflect.Value) yamlpos.Node {
	switch {
	case fd.IsMap():
		var entries fields
		value.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
			entries.put(key.String(), valueNode(fd.MapValue(), value))
			return true
		})
		return entries.node()
	case fd.IsList():
		list := value.List()
		items := make([]yamlpos.Node, list.Len())
		for i := range items {
			items[i] = valueNode(fd, list.Get(i))
		}
		return yamlpos.NewList(items)
	default:
		return valueNode(fd, value)
	}
}

// valueNode returns a single value of a field.
func valueNode(fd protoreflect.FieldDescriptor, value protoreflect.Value) yamlpos.Node {
	switch fd.Kind() {
	case protoreflect.MessageKind:
		return messageNode(value.Message())
	case protoreflect.StringKind:
		return yamlpos.NewScalar(yamlpos.String, value.String())
	case protoreflect.BoolKind:
		return yamlpos.NewScalar(yamlpos.Bool, strconv.FormatBool(value.Bool()))
	case protoreflect.EnumKind:
		if known := fd.Enum().Values().ByNumber(value.Enum()); known != nil {
			return yamlpos.NewScalar(yamlpos.String, string(known.Name()))
		}
		return yamlpos.NewScalar(yamlpos.Number, strconv.Itoa(int(value.Enum())))
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		return yamlpos.NewScalar(yamlpos.Number, strconv.FormatUint(value.Uint(), 10))
	default: // the other numbers are whole, too: see integer
		return yamlpos.NewScalar(yamlpos.Number, strconv.FormatInt(value.Int(), 10))
	}
}

// durationText writes a duration in seconds, as in the JSON form of the message. It has 3,
// 6 or 9 digits after the point if needed. An invalid duration becomes a text that
// validation rejects.
func durationText(d *durationpb.Duration) string {
	if d.CheckValid() != nil {
		return fmt.Sprintf("%d s %d ns", d.GetSeconds(), d.GetNanos())
	}
	seconds, nanos, sign := d.GetSeconds(), d.GetNanos(), ""
	if seconds < 0 || nanos < 0 {
		seconds, nanos, sign = -seconds, -nanos, "-"
	}
	text := fmt.Sprintf("%s%d.%09d", sign, seconds, nanos)
	for range 3 {
		text = strings.TrimSuffix(text, "000")
	}
	return strings.TrimSuffix(text, ".") + "s"
}
