package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/spelling"
	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

// decoder fills structures from a document and collects mismatches.
type decoder struct {
	kinds    Kinds
	lookup   func(string) (string, bool)
	problems []Problem
}

// defaulter is a structure that sets its defaults itself. No outer structure can, since it is in
// a list, may be left out, or has a meaning although it is empty, as in "tls: {}". SetDefaults is called
// before it is filled, once or twice.
type defaulter interface{ SetDefaults() }

// setDefaults sets the defaults of the value of a pointer, if it is a defaulter.
func setDefaults(pointer reflect.Value) {
	if defaults, ok := reflect.TypeAssert[defaulter](pointer); ok {
		defaults.SetDefaults()
	}
}

// extensible is a structure, or a value in place of one, with more keys than its own
// fields: one for each kind of a table.
type extensible interface {
	keys(kinds Kinds) []string
	// settings makes the value that a key is filled into.
	settings(kinds Kinds, key string) (into any, known bool)
}

func (d *decoder) complain(n *yamlpos.Node, line int, field, format string, args ...any) {
	if line == 0 {
		line = n.Line()
	}
	d.problems = append(d.problems, Problem{line, field, fmt.Sprintf(format, args...)})
}

// decode stores a node in the value that target points to. A null leaves it unchanged.
func (d *decoder) decode(n *yamlpos.Node, field string, target any) {
	d.value(n, field, reflect.ValueOf(target).Elem())
}

func (d *decoder) value(n *yamlpos.Node, field string, v reflect.Value) {
	switch {
	case v.Kind() == reflect.Interface: // the settings of a kind, which knows the keys
		d.value(n, field, v.Elem())
	case v.Kind() == reflect.Pointer && (n.Kind() != yamlpos.Null || v.Type().Elem().Kind() == reflect.Struct):
		// An empty entry such as "file:" names a kind without settings.
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
			setDefaults(v)
		}
		d.value(n, field, v.Elem())
	case n.Kind() == yamlpos.Null:
	case v.Kind() == reflect.Struct || isExtensible(v):
		d.structure(n, field, v)
	case v.Kind() == reflect.Slice:
		d.list(n, field, v)
	case v.Kind() == reflect.Map:
		d.entries(n, field, v)
	default:
		d.scalar(n, field, v)
	}
}

func (d *decoder) structure(n *yamlpos.Node, field string, v reflect.Value) {
	if n.Kind() != yamlpos.Map {
		d.complain(n, 0, field, "is %s; keys and values belong here: %s", n.Kind(), strings.Join(d.keysOf(v), ", "))
		return
	}
	if v.CanAddr() {
		setDefaults(v.Addr())
	}
	for key, node := range n.Fields() {
		at := key.Name
		if field != "" {
			at = field + "." + key.Name
		}
		target, known := d.entryOf(v, key.Name)
		if !known {
			d.complain(n, key.Line, at, "%s", unknownKey(key.Name, d.keysOf(v)))
			continue
		}
		d.value(node, at, target)
	}
}

func unknownKey(key string, known []string) string {
	question := ""
	if near := spelling.Nearest(key, known); near != "" {
		question = " did you mean " + near + "?"
	}
	return "unknown key;" + question + " known here: " + strings.Join(known, ", ")
}

func isExtensible(v reflect.Value) bool {
	if !v.CanAddr() {
		return false
	}
	_, ok := reflect.TypeAssert[extensible](v.Addr())
	return ok
}

// entryOf returns the value that a key is filled into.
func (d *decoder) entryOf(v reflect.Value, key string) (reflect.Value, bool) {
	if v.Kind() == reflect.Struct {
		for _, f := range reflect.VisibleFields(v.Type()) {
			if keyOf(f) == key {
				return v.FieldByIndex(f.Index), true
			}
		}
	}
	if isExtensible(v) {
		more, _ := reflect.TypeAssert[extensible](v.Addr())
		if into, known := more.settings(d.kinds, key); known {
			return reflect.ValueOf(into).Elem(), true
		}
	}
	return reflect.Value{}, false
}

// named is an entry of a list that may also be written as a map of names. Each value is
// then the main part of an entry alone.
type named interface {
	// Named sets the entry's name, and returns the value that the rest is filled into.
	Named(name string) any
}

func (d *decoder) list(n *yamlpos.Node, field string, v reflect.Value) {
	if _, may := reflect.TypeAssert[named](reflect.New(v.Type().Elem())); may && n.Kind() == yamlpos.Map {
		d.namedEntries(n, field, v)
		return
	}
	if n.Kind() != yamlpos.List {
		d.complain(n, 0, field, "is %s; a list belongs here: begin each entry with a dash", n.Kind())
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), n.Len(), n.Len()))
	for i, item := range n.Items() {
		setDefaults(v.Index(i).Addr())
		d.value(item, fmt.Sprintf("%s[%d]", field, i), v.Index(i))
	}
}

// namedEntries fills a list from a map.
func (d *decoder) namedEntries(n *yamlpos.Node, field string, v reflect.Value) {
	for key, node := range n.Fields() {
		entry := reflect.New(v.Type().Elem())
		setDefaults(entry)
		by, _ := reflect.TypeAssert[named](entry)
		d.value(node, field+"."+key.Name, reflect.ValueOf(by.Named(key.Name)).Elem())
		v.Set(reflect.Append(v, entry.Elem()))
	}
}

// entries fills a map with keys that the operator chooses.
func (d *decoder) entries(n *yamlpos.Node, field string, v reflect.Value) {
	if n.Kind() != yamlpos.Map {
		d.complain(n, 0, field, "is %s; keys and values belong here", n.Kind())
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for key, node := range n.Fields() {
		value := reflect.New(v.Type().Elem()).Elem()
		d.value(node, field+"."+key.Name, value)
		v.SetMapIndex(reflect.ValueOf(key.Name), value)
	}
}

func (d *decoder) scalar(n *yamlpos.Node, field string, v reflect.Value) {
	if n.Kind() == yamlpos.Map || n.Kind() == yamlpos.List {
		d.complain(n, 0, field, "is %s; a single value belongs here", n.Kind())
		return
	}
	text, err := expand(n.Text(), d.lookup)
	if err != nil {
		d.complain(n, 0, field, "%v", err)
		return
	}
	if err := store(text, v); err != nil {
		d.complain(n, 0, field, "%v", err)
	}
}

// store parses a text in the type of v.
func store(text string, v reflect.Value) error {
	if v.Type() == reflect.TypeFor[time.Duration]() {
		duration, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q is not a duration; write a number and a unit, such as 1s or 250ms", text)
		}
		v.SetInt(int64(duration))
		return nil
	}
	switch v.Kind() { //nolint:exhaustive // the kinds configurations are made of
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil || text != "true" && text != "false" {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		v.SetBool(b)
	case reflect.Int:
		i, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		v.SetInt(int64(i))
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("%q is not a number", text)
		}
		v.SetFloat(f)
	default:
		panic(fmt.Sprintf("configuration has a field of type %s, which no file can express", v.Type()))
	}
	return nil
}

func keyOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func (d *decoder) keysOf(v reflect.Value) (keys []string) {
	if v.Kind() == reflect.Struct {
		for _, f := range reflect.VisibleFields(v.Type()) {
			if key := keyOf(f); key != "" {
				keys = append(keys, key)
			}
		}
	}
	if isExtensible(v) {
		more, _ := reflect.TypeAssert[extensible](v.Addr())
		keys = append(keys, more.keys(d.kinds)...)
	}
	return keys
}
