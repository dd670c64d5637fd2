package istio

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"

	networking "istio.io/api/networking/v1alpha3"
)

// EntryOf converts an API server's specification of a ServiceEntry, as decoded by a client
// for any kind of object. It does not validate: unknown or unfitting fields are left out.
// The result is never nil.
func EntryOf(spec any) *networking.ServiceEntry { return entryOf(spec, loose.workload) }

// OutlineOf is [EntryOf] with only the identity of each endpoint: address, network and
// ports. Watchers of an API server call it for every object, so it converts directly from
// one form to the other.
func OutlineOf(spec any) *networking.ServiceEntry { return entryOf(spec, loose.outline) }

// WorkloadOutlineOf is [OutlineOf] for the specification of a WorkloadEntry.
func WorkloadOutlineOf(spec any) *networking.WorkloadEntry {
	entry := &networking.WorkloadEntry{}
	looseOf(spec).outline(entry)
	return entry
}

func entryOf(spec any, endpoint func(loose, *networking.WorkloadEntry)) *networking.ServiceEntry {
	from := looseOf(spec)
	entry := &networking.ServiceEntry{
		Hosts:           from.texts("hosts"),
		Addresses:       from.texts("addresses"),
		Location:        networking.ServiceEntry_Location(networking.ServiceEntry_Location_value[from.text("location")]),
		Resolution:      networking.ServiceEntry_Resolution(networking.ServiceEntry_Resolution_value[from.text("resolution")]),
		ExportTo:        from.texts("exportTo"),
		SubjectAltNames: from.texts("subjectAltNames"),
	}
	for _, item := range from.list("ports") {
		port := looseOf(item)
		entry.Ports = append(entry.Ports, &networking.ServicePort{
			Number: port.number("number"), Protocol: port.text("protocol"), Name: port.text("name"), TargetPort: port.number("targetPort"),
		})
	}
	if endpoints := from.list("endpoints"); len(endpoints) > 0 {
		all := make([]networking.WorkloadEntry, len(endpoints))
		entry.Endpoints = make([]*networking.WorkloadEntry, len(endpoints))
		for i, item := range endpoints {
			entry.Endpoints[i] = &all[i]
			endpoint(looseOf(item), &all[i])
		}
	}
	if selector, ok := from["workloadSelector"].(map[string]any); ok {
		entry.WorkloadSelector = &networking.WorkloadSelector{Labels: loose(selector).textMap("labels")}
	}
	return entry
}

func (l loose) workload(to *networking.WorkloadEntry) {
	l.outline(to)
	to.Labels, to.Locality = l.textMap("labels"), l.text("locality")
	to.Weight, to.ServiceAccount = l.number("weight"), l.text("serviceAccount")
}

func (l loose) outline(to *networking.WorkloadEntry) {
	to.Address, to.Network, to.Ports = l.text("address"), l.text("network"), l.numberMap("ports")
}

// loose is a map without a known schema.
type loose map[string]any

func looseOf(v any) loose {
	fields, _ := v.(map[string]any)
	return fields
}

func (l loose) text(name string) string {
	text, _ := l[name].(string)
	return text
}

func (l loose) number(name string) uint32 { return looseNumber(l[name]) }

// looseNumber returns a whole number in range; zero for any other value.
func looseNumber(v any) uint32 {
	switch n := v.(type) {
	case int64:
		if 0 <= n && n <= math.MaxUint32 {
			return uint32(n)
		}
	case float64:
		if 0 <= n && n <= math.MaxUint32 && math.Trunc(n) == n {
			return uint32(n)
		}
	}
	return 0
}

func (l loose) list(name string) []any {
	list, _ := l[name].([]any)
	return list
}

func (l loose) texts(name string) (texts []string) {
	for _, item := range l.list(name) {
		if text, ok := item.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

func (l loose) textMap(name string) map[string]string {
	from := looseOf(l[name])
	if len(from) == 0 {
		return nil
	}
	out := make(map[string]string, len(from))
	for key := range from {
		out[key] = from.text(key)
	}
	return out
}

func (l loose) numberMap(name string) map[string]uint32 {
	from := looseOf(l[name])
	if len(from) == 0 {
		return nil
	}
	out := make(map[string]uint32, len(from))
	for key := range from {
		out[key] = from.number(key)
	}
	return out
}

// AppendDecoded appends the JSON form of a specification, as decoded by a client for any
// kind of object. The bytes are equal to encoding/json's, and so to those of [AppendSpec]
// for the same content.
//
// Watchers of an API server call it for every object. Most of encoding/json's cost is for
// types that cannot occur.
func AppendDecoded(b []byte, spec any) []byte {
	e := encoder{out: b}
	e.decoded(spec)
	return e.out
}

func (e *encoder) decoded(v any) {
	switch v := v.(type) {
	case map[string]any:
		e.decodedMap(v)
	case []any:
		e.decodedList(v)
	case string:
		e.text(v)
	case bool:
		e.out = strconv.AppendBool(e.out, v)
	case int64:
		e.out = strconv.AppendInt(e.out, v, 10)
	default: // nil and fractions
		text, _ := json.Marshal(v) //nolint:errchkjson // it came out of JSON
		e.out = append(e.out, text...)
	}
}

func (e *encoder) decodedMap(m map[string]any) {
	if m == nil {
		e.out = append(e.out, "null"...)
		return
	}
	var few [16]string // up to this number of fields costs no allocation
	names := few[:0]
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	separator := byte('{')
	for _, name := range names {
		e.out = append(e.out, separator)
		separator = ','
		e.text(name)
		e.out = append(e.out, ':')
		e.decoded(m[name])
	}
	e.end('{', '}', separator)
}

func (e *encoder) decodedList(list []any) {
	if list == nil {
		e.out = append(e.out, "null"...)
		return
	}
	separator := byte('[')
	for _, v := range list {
		e.out = append(e.out, separator)
		separator = ','
		e.decoded(v)
	}
	e.end('[', ']', separator)
}
