package istio

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// AppendSpec appends the JSON form of a specification. It is stable: the same content has
// the same bytes, equal to encoding/json's for a map. A written specification can therefore
// be compared with the API server's. Fields come in the order of their names, and empty
// ones are left out, as an API server keeps them. Only location and resolution of a
// ServiceEntry are always written.
func AppendSpec(b []byte, spec proto.Message) []byte {
	e := encoder{b, map[protoreflect.FullName][]protoreflect.FieldDescriptor{}}
	e.message(spec.ProtoReflect())
	return e.out
}

// encoder appends to out. It caches the order of the fields, since thousands of endpoints
// have the same.
type encoder struct {
	out   []byte
	order map[protoreflect.FullName][]protoreflect.FieldDescriptor
}

// isExplicit reports whether a field is written although it is zero.
func isExplicit(fd protoreflect.FieldDescriptor) bool {
	switch fd.FullName() {
	case "istio.networking.v1alpha3.ServiceEntry.location", "istio.networking.v1alpha3.ServiceEntry.resolution":
		return true
	}
	return false
}

func (e *encoder) fieldsOf(md protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	if known, ok := e.order[md.FullName()]; ok {
		return known
	}
	list := make([]protoreflect.FieldDescriptor, md.Fields().Len())
	for i := range list {
		list[i] = md.Fields().Get(i)
	}
	slices.SortFunc(list, func(a, b protoreflect.FieldDescriptor) int { return strings.Compare(a.JSONName(), b.JSONName()) })
	e.order[md.FullName()] = list
	return list
}

func (e *encoder) message(m protoreflect.Message) {
	switch known := m.Interface().(type) {
	case *durationpb.Duration:
		e.text(durationText(known))
		return
	case *wrapperspb.BoolValue:
		e.out = strconv.AppendBool(e.out, known.GetValue())
		return
	}
	separator := byte('{')
	for _, fd := range e.fieldsOf(m.Descriptor()) {
		if !m.Has(fd) && !isExplicit(fd) {
			continue
		}
		e.out = append(e.out, separator)
		separator = ','
		e.text(fd.JSONName())
		e.out = append(e.out, ':')
		e.field(fd, m.Get(fd))
	}
	e.end('{', '}', separator)
}

// end closes a list or map, and opens it first if it is empty.
func (e *encoder) end(opening, closing, separator byte) {
	if separator == opening {
		e.out = append(e.out, opening)
	}
	e.out = append(e.out, closing)
}

func (e *encoder) field(fd protoreflect.FieldDescriptor, value protoreflect.Value) {
	switch {
	case fd.IsMap():
		e.entries(fd.MapValue(), value.Map())
	case fd.IsList():
		separator := byte('[')
		for i := range value.List().Len() {
			e.out = append(e.out, separator)
			separator = ','
			e.value(fd, value.List().Get(i))
		}
		e.end('[', ']', separator)
	default:
		e.value(fd, value)
	}
}

func (e *encoder) entries(fd protoreflect.FieldDescriptor, m protoreflect.Map) {
	entries := make(map[string]protoreflect.Value, m.Len())
	m.Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
		entries[key.String()] = value
		return true
	})
	separator := byte('{')
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e.out = append(e.out, separator)
		separator = ','
		e.text(name)
		e.out = append(e.out, ':')
		e.value(fd, entries[name])
	}
	e.end('{', '}', separator)
}

func (e *encoder) value(fd protoreflect.FieldDescriptor, value protoreflect.Value) {
	switch fd.Kind() {
	case protoreflect.MessageKind:
		e.message(value.Message())
	case protoreflect.StringKind:
		e.text(value.String())
	case protoreflect.BoolKind:
		e.out = strconv.AppendBool(e.out, value.Bool())
	case protoreflect.EnumKind:
		if known := fd.Enum().Values().ByNumber(value.Enum()); known != nil {
			e.text(string(known.Name()))
			return
		}
		e.out = strconv.AppendInt(e.out, int64(value.Enum()), 10)
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		e.out = strconv.AppendUint(e.out, value.Uint(), 10)
	default: // the only other numbers
		e.out = strconv.AppendInt(e.out, value.Int(), 10)
	}
}

// text appends a string as encoding/json does.
func (e *encoder) text(s string) {
	for i := range len(s) {
		if isEscaped(s[i]) {
			e.out = append(e.out, mustJSON(s)...)
			return
		}
	}
	e.out = append(append(append(e.out, '"'), s...), '"')
}

// isEscaped reports whether encoding/json may write a byte of a string in another way.
func isEscaped(c byte) bool {
	switch c {
	case '"', '\\', '<', '>', '&', 0x7f:
		return true
	default:
		return c < ' ' || c >= utf8.RuneSelf
	}
}

// MarshalJSON writes the object as a manifest.
func (o Object) MarshalJSON() ([]byte, error) {
	return json.Marshal(manifest{
		APIVersion: Group + "/" + Version,
		Kind:       string(o.Kind()),
		Metadata:   CarriedMetadata{o.Namespace, o.Name, o.Meta.Labels, o.Meta.Annotations, o.Meta.Created},
		Spec:       json.RawMessage(AppendSpec(nil, o.Spec)),
	})
}
