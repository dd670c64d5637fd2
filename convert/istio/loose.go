package istio

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"

	networking "istio.io/api/networking/v1alpha3"
)

// EntryOf returns what an API server has as the specification of a ServiceEntry,
// in the form in which a client for any kind of object decodes it. Nothing is
// judged: what does not fit, or is not known, is left out. It is never nil.
func EntryOf(spec any) *networking.ServiceEntry { return entryOf(spec, loose.workload) }

// OutlineOf is [EntryOf] with nothing of each endpoint but what tells it from others:
// address, network and ports. Whoever watches an API server does this for every
// object, so it goes straight from one form to the other.
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

// loose is a map of which nothing is known for sure.
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

// looseNumber is zero for what is no number, or no whole one in range.
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

// AppendDecoded appends the JSON form of a specification as a client for any kind
// of object decodes it. The bytes are those of encoding/json, and so those of
// [AppendSpec] for the same content.
//
// Whoever watches an API server does this for every object, and most of what
// encoding/json takes is for types that cannot come.
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
	var few [16]string // fields; for as many no memory is taken
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
