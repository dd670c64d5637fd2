package istio

import (
	"math"

	networking "istio.io/api/networking/v1alpha3"
)

// EntryOf returns what an API server has as the specification of a ServiceEntry,
// in the form in which a client for any kind of object decodes it. Nothing is
// judged: what does not fit, or is not known, is left out. It is never nil.
//
// Whoever watches an API server does this for every object, so it goes straight
// from one form to the other.
func EntryOf(spec any) *networking.ServiceEntry {
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
		entry.Endpoints = make([]*networking.WorkloadEntry, len(endpoints))
		for i, item := range endpoints {
			entry.Endpoints[i] = looseOf(item).workload()
		}
	}
	if selector, ok := from["workloadSelector"].(map[string]any); ok {
		entry.WorkloadSelector = &networking.WorkloadSelector{Labels: loose(selector).textMap("labels")}
	}
	return entry
}

func (l loose) workload() *networking.WorkloadEntry {
	return &networking.WorkloadEntry{
		Address:        l.text("address"),
		Ports:          l.numberMap("ports"),
		Labels:         l.textMap("labels"),
		Network:        l.text("network"),
		Locality:       l.text("locality"),
		Weight:         l.number("weight"),
		ServiceAccount: l.text("serviceAccount"),
	}
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
