package istio

import (
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/isthmus-mesh/isthmus/internal/spelling"
	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

// fill converts a document into its message. It notes every violation of the schema of the
// custom resource: unknown fields, types, and the rules of [schema]. That schema is
// stricter than the JSON form of the message, which takes numbers in quotes, enums by
// number and names with underscores.
func fill(node *yamlpos.Node, m protoreflect.Message, at trail, p *problems) {
	if node.Kind() != yamlpos.Map {
		p.fail(at, "must be a map, is %s", node.Kind())
		return
	}
	fields, strange := m.Descriptor().Fields(), false
	for key, value := range node.Fields() {
		here := at.field(key.Name)
		fd := fields.ByJSONName(key.Name)
		switch {
		case fd == nil:
			strange = true
			p.fail(here, "unknown field: %s", hint{key.Name, fieldNames(m.Descriptor())})
		case !present(value) && fd.IsList() && !ruleOf(fd).required:
			p.fail(here, "must be a list, is null: write its entries, or remove %s", key.Name)
		case !present(value): // null means absent
		case taken(m, fd):
			p.fail(here, "only one of %s can be given: remove the others", strings.Join(alternatives(fd), ", "))
		default:
			fillField(value, m, fd, here, p)
		}
	}
	if !strange { // otherwise the missing field was most likely misspelled
		checkRequired(node, m.Descriptor(), at, p)
	}
}

// taken reports whether the document gave an alternative of the field before.
func taken(m protoreflect.Message, fd protoreflect.FieldDescriptor) bool {
	one := fd.ContainingOneof()
	return one != nil && m.WhichOneof(one) != nil
}

func alternatives(fd protoreflect.FieldDescriptor) []string {
	fields := fd.ContainingOneof().Fields()
	names := make([]string, fields.Len())
	for i := range names {
		names[i] = fields.Get(i).JSONName()
	}
	return names
}

func fillField(node *yamlpos.Node, m protoreflect.Message, fd protoreflect.FieldDescriptor, at trail, p *problems) {
	r := ruleOf(fd)
	switch {
	case fd.IsMap():
		if node.Kind() != yamlpos.Map {
			p.fail(at, "must be a map, is %s", node.Kind())
			return
		}
		r.checkCount(node.Len(), at, p)
		fillMap(node, m.Mutable(fd).Map(), fd, r, at, p)
	case fd.IsList():
		if node.Kind() != yamlpos.List {
			p.fail(at, "must be a list, is %s: begin each entry with a hyphen", node.Kind())
			return
		}
		if !p.carried || fd.Name() != "endpoints" {
			r.checkCount(node.Len(), at, p)
		}
		fillList(node, m.Mutable(fd).List(), fd, r, at, p)
	case fd.Message() != nil:
		fillMessage(node, m.Mutable(fd).Message(), at, p)
	default:
		if value, ok := scalar(node, fd, r, at, p); ok {
			m.Set(fd, value)
		}
	}
}

func fillMap(
	node *yamlpos.Node, out protoreflect.Map, fd protoreflect.FieldDescriptor, r rule, at trail, p *problems,
) {
	for key, value := range node.Fields() {
		if !present(value) {
			continue
		}
		here := at.field(key.Name)
		name, ok := mapKey(key.Name, fd.MapKey(), here, p)
		if !ok {
			continue
		}
		if fd.MapValue().Message() != nil {
			fillMessage(value, out.Mutable(name).Message(), here, p)
		} else if value, ok := scalar(value, fd.MapValue(), r, here, p); ok {
			out.Set(name, value)
		}
	}
}

// mapKey returns the key of a map: a string, or a whole number such as a port.
func mapKey(name string, fd protoreflect.FieldDescriptor, at trail, p *problems) (key protoreflect.MapKey, ok bool) {
	if fd.Kind() == protoreflect.StringKind {
		return protoreflect.ValueOfString(name).MapKey(), true
	}
	node := yamlpos.NewScalar(yamlpos.Number, name)
	value, ok := integer(&node, fd.Kind(), rule{}, at, p)
	return value.MapKey(), ok
}

func fillList(
	node *yamlpos.Node, out protoreflect.List, fd protoreflect.FieldDescriptor, r rule, at trail, p *problems,
) {
	for i, item := range node.Items() {
		here := at.item(i)
		if fd.Message() != nil {
			fillMessage(item, out.AppendMutable().Message(), here, p)
		} else if value, ok := scalar(item, fd, r, here, p); ok {
			out.Append(value)
		}
	}
}

// fillMessage handles the messages that are not maps in JSON.
func fillMessage(node *yamlpos.Node, m protoreflect.Message, at trail, p *problems) {
	fields := m.Descriptor().Fields()
	switch m.Descriptor().FullName() {
	case "google.protobuf.Duration":
		d, err := time.ParseDuration(node.Text())
		if node.Kind() != yamlpos.String || err != nil {
			p.fail(at, "%q is not a duration: write one such as 10s, 1m30s or 5ms", node.Text())
			return
		}
		m.Set(fields.ByName("seconds"), protoreflect.ValueOfInt64(int64(d/time.Second)))
		m.Set(fields.ByName("nanos"), protoreflect.ValueOfInt32(int32(d%time.Second)))
	case "google.protobuf.BoolValue", "google.protobuf.DoubleValue", "google.protobuf.Int32Value", "google.protobuf.UInt32Value":
		fillField(node, m, fields.ByName("value"), at, p)
	case "google.protobuf.Struct":
		if node.Kind() != yamlpos.Map {
			p.fail(at, "must be a map, is %s", node.Kind())
			return
		}
		text, _ := node.JSON()
		if err := protojson.Unmarshal(text, m.Interface()); err != nil {
			p.fail(at, "cannot be read: %v", err)
		}
	default:
		fill(node, m, at, p)
	}
}

// scalar returns the value of a node in the type of the field.
func scalar(
	node *yamlpos.Node, fd protoreflect.FieldDescriptor, r rule, at trail, p *problems,
) (value protoreflect.Value, ok bool) {
	switch fd.Kind() {
	case protoreflect.EnumKind:
		return enum(node, fd.Enum(), at, p)
	case protoreflect.StringKind:
		if node.Kind() != yamlpos.String {
			p.fail(at, "must be a string, is %s%s", node.Kind(), quoteIt(node))
			return value, false
		}
		r.checkText(node.Text(), at, p)
		return protoreflect.ValueOfString(node.Text()), true
	case protoreflect.BoolKind:
		if node.Kind() != yamlpos.Bool {
			p.fail(at, "must be true or false, is %s", node.Kind())
			return value, false
		}
		return protoreflect.ValueOfBool(node.Text() == "true"), true
	case protoreflect.DoubleKind:
		f, err := strconv.ParseFloat(node.Text(), 64)
		if node.Kind() != yamlpos.Number || err != nil {
			p.fail(at, "must be a number, is %s: correct it", node.Kind())
			return value, false
		}
		return protoreflect.ValueOfFloat64(f), true
	case protoreflect.BytesKind:
		text, err := base64.StdEncoding.DecodeString(node.Text())
		if node.Kind() != yamlpos.String || err != nil {
			p.fail(at, "must be bytes in base64: encode them")
			return value, false
		}
		return protoreflect.ValueOfBytes(text), true
	default:
		return integer(node, fd.Kind(), r, at, p)
	}
}

func quoteIt(node *yamlpos.Node) string {
	if k := node.Kind(); k == yamlpos.Number || k == yamlpos.Bool {
		return ": write \"" + node.Text() + "\""
	}
	return ""
}

func enum(
	node *yamlpos.Node, ed protoreflect.EnumDescriptor, at trail, p *problems,
) (value protoreflect.Value, ok bool) {
	if node.Kind() == yamlpos.String {
		if found := ed.Values().ByName(protoreflect.Name(node.Text())); found != nil {
			return protoreflect.ValueOfEnum(found.Number()), true
		}
	}
	names := make([]string, ed.Values().Len())
	for i := range names {
		names[i] = string(ed.Values().Get(i).Name())
	}
	p.fail(at, "%q is none of its values: use one of %s", node.Text(), strings.Join(names, ", "))
	return value, false
}

// integer reads the kinds of whole numbers.
func integer(
	node *yamlpos.Node, kind protoreflect.Kind, r rule, at trail, p *problems,
) (value protoreflect.Value, ok bool) {
	if node.Kind() != yamlpos.Number {
		p.fail(at, "must be a whole number, is %s", node.Kind())
		return value, false
	}
	n, ok := whole(node.Text())
	least, most := int64(math.MinInt32), int64(math.MaxInt32)
	switch kind {
	case protoreflect.Uint32Kind:
		least, most = 0, math.MaxUint32
	case protoreflect.Uint64Kind:
		least, most = 0, math.MaxInt64
	default:
	}
	if !ok || n < least || n > most {
		p.fail(at, "%s is not a whole number in range: correct it", node.Text())
		return value, false
	}
	r.checkNumber(n, at, p)
	switch kind {
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(n)), true
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(uint64(n)), true
	default:
		return protoreflect.ValueOfInt32(int32(n)), true
	}
}

// whole reads a number that is whole, such as 80, 8e1 or 80.0.
func whole(text string) (int64, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.Abs(f) > math.MaxUint32 || math.Trunc(f) != f {
		return 0, false
	}
	return int64(f), true
}

func fieldNames(md protoreflect.MessageDescriptor) []string {
	names := make([]string, md.Fields().Len())
	for i := range names {
		names[i] = md.Fields().Get(i).JSONName()
	}
	slices.Sort(names)
	return names
}

// hint is the fix for a name that is not a known one. Its text is only made for a problem
// that is reported.
type hint struct {
	name  string
	known []string
}

func (h hint) String() string {
	if near := spelling.Nearest(h.name, h.known); near != "" {
		return "did you mean " + near + "?"
	}
	return "remove it, or use one of " + strings.Join(h.known, ", ")
}
