package file

import (
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

// checkShape compares a document with the message it is meant to be. protojson
// would find most of this, but only the first of it and without the path; and
// it accepts what the schema of the custom resource does not: numbers in
// quotes, enums by number, names with underscores.
func checkShape(node *yamlpos.Node, md protoreflect.MessageDescriptor, at trail, v *verdict) {
	if strings.HasPrefix(string(md.FullName()), "google.protobuf.") {
		return // these have a JSON form of their own, which protojson knows
	}
	if node.Kind() != yamlpos.Map {
		v.add(at, "must be a map, is %s", node.Kind())
		return
	}
	for key, value := range node.Fields() {
		here := at.field(key.Name)
		fd := md.Fields().ByJSONName(key.Name)
		switch {
		case fd == nil:
			v.add(here, "unknown field: %s", hint(key.Name, fieldNames(md)))
		case !present(value): // null is as good as absent
		case fd.IsMap():
			checkMap(value, fd, here, v)
		case fd.IsList():
			checkList(value, fd, here, v)
		default:
			checkValue(value, fd, here, v)
		}
	}
}

func checkMap(node *yamlpos.Node, fd protoreflect.FieldDescriptor, at trail, v *verdict) {
	if node.Kind() != yamlpos.Map {
		v.add(at, "must be a map, is %s", node.Kind())
		return
	}
	for key, value := range node.Fields() {
		checkValue(value, fd.MapValue(), at.field(key.Name), v)
	}
}

func checkList(node *yamlpos.Node, fd protoreflect.FieldDescriptor, at trail, v *verdict) {
	if node.Kind() != yamlpos.List {
		v.add(at, "must be a list, is %s: begin each entry with a hyphen", node.Kind())
		return
	}
	for i, item := range node.Items() {
		checkValue(item, fd, at.item(i), v)
	}
}

func checkValue(node *yamlpos.Node, fd protoreflect.FieldDescriptor, at trail, v *verdict) {
	switch fd.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		checkShape(node, fd.Message(), at, v)
	case protoreflect.EnumKind:
		checkEnum(node, fd.Enum(), at, v)
	case protoreflect.StringKind, protoreflect.BytesKind:
		if node.Kind() != yamlpos.String {
			v.add(at, "must be a string, is %s%s", node.Kind(), quoteIt(node))
		}
	case protoreflect.BoolKind:
		if node.Kind() != yamlpos.Bool {
			v.add(at, "must be true or false, is %s", node.Kind())
		}
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		if node.Kind() != yamlpos.Number {
			v.add(at, "must be a number, is %s", node.Kind())
		}
	default:
		checkInteger(node, fd.Kind(), at, v)
	}
}

func quoteIt(node *yamlpos.Node) string {
	if k := node.Kind(); k == yamlpos.Number || k == yamlpos.Bool {
		return ": write \"" + node.Text() + "\""
	}
	return ""
}

func checkEnum(node *yamlpos.Node, ed protoreflect.EnumDescriptor, at trail, v *verdict) {
	var names []string
	for i := range ed.Values().Len() {
		names = append(names, string(ed.Values().Get(i).Name()))
	}
	if node.Kind() != yamlpos.String || !slices.Contains(names, node.Text()) {
		v.add(at, "%q is none of its values: use one of %s", node.Text(), strings.Join(names, ", "))
	}
}

func checkInteger(node *yamlpos.Node, kind protoreflect.Kind, at trail, v *verdict) {
	if node.Kind() != yamlpos.Number {
		v.add(at, "must be a whole number, is %s", node.Kind())
		return
	}
	var err error
	switch kind {
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		_, err = strconv.ParseUint(node.Text(), 10, 32)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		_, err = strconv.ParseUint(node.Text(), 10, 64)
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		_, err = strconv.ParseInt(node.Text(), 10, 64)
	default:
		_, err = strconv.ParseInt(node.Text(), 10, 32)
	}
	if err != nil {
		v.add(at, "%s is not a whole number in range: correct it", node.Text())
	}
}

func fieldNames(md protoreflect.MessageDescriptor) []string {
	names := make([]string, md.Fields().Len())
	for i := range names {
		names[i] = md.Fields().Get(i).JSONName()
	}
	slices.Sort(names)
	return names
}
