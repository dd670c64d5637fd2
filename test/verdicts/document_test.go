package verdicts

import (
	"maps"
	"slices"
	"strings"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"pgregory.net/rapid"
)

// maker makes documents of one kind: a valid one, which is then spoilt in a
// few places anywhere below its specification.
type maker struct {
	kind   string
	schema *structural.Structural // of spec
	paths  [][]string             // all fields below spec; "*" is any entry
}

func newMaker(d *definition) *maker {
	spec := d.schema.Properties["spec"]
	m := &maker{kind: d.kind, schema: &spec}
	m.collect(&spec, nil)
	slices.SortFunc(m.paths, func(a, b []string) int { return strings.Compare(strings.Join(a, "."), strings.Join(b, ".")) })
	return m
}

// collect gathers all fields below a schema.
func (m *maker) collect(s *structural.Structural, path []string) {
	if len(path) > 0 {
		m.paths = append(m.paths, path)
	}
	for name, child := range s.Properties {
		m.collect(&child, append(slices.Clone(path), name))
	}
	if s.Items != nil {
		m.collect(s.Items, append(slices.Clone(path), "*"))
	}
	if s.AdditionalProperties != nil {
		m.collect(s.AdditionalProperties.Structural, append(slices.Clone(path), "*"))
	}
}

// document makes a document.
func (m *maker) document(t *rapid.T) object {
	doc := object{
		"apiVersion": pick(t, list{group + "/v1", group + "/v1beta1", group + "/v1alpha3"}), "kind": m.kind,
		"metadata": object{"name": "x"},
	}
	doc["spec"] = valid[m.kind](t)
	for range rapid.SampledFrom([]int{0, 1, 1, 1, 2, 3}).Draw(t, "faults") {
		if chance(t, 40) {
			doc[pick(t, list{"spec", "metadata", "status", "Spec", "bogus"}).(string)] = pick(t, misfits)
		} else if chance(t, 12) {
			doc["metadata"] = spoilMetadata(t, doc["metadata"])
		} else {
			path := rapid.SampledFrom(m.paths).Draw(t, "path")
			doc["spec"] = m.spoil(t, doc["spec"], m.schema, path, []string{"spec"})
		}
	}
	return doc
}

// spoil changes what is at path, making what leads there.
func (m *maker) spoil(t *rapid.T, at any, s *structural.Structural, path, here []string) any {
	if len(path) == 0 {
		return m.change(t, at, s, here)
	}
	step, below := path[0], append(slices.Clone(here), path[0])
	switch {
	case s.Items != nil:
		items, ok := at.(list)
		if !ok || len(items) == 0 {
			items = list{nil}
		}
		items = slices.Clone(items)
		i := rapid.IntRange(0, len(items)-1).Draw(t, "item")
		if items[i] = m.spoil(t, items[i], s.Items, path[1:], here); items[i] == absent {
			items = slices.Delete(items, i, i+1)
		}
		return items
	case s.AdditionalProperties != nil:
		entries := cloned(at)
		name := m.key(t, here, entries)
		if entries[name] = m.spoil(t, entries[name], s.AdditionalProperties.Structural, path[1:], here); entries[name] == absent {
			delete(entries, name)
		}
		return entries
	default:
		fields, child := cloned(at), s.Properties[step]
		value := m.spoil(t, fields[step], &child, path[1:], below)
		if value == absent {
			delete(fields, step)
		} else {
			fields[step] = value
		}
		return fields
	}
}

// absent in place of a value means that there is none.
var absent any = new(int)

func (m *maker) change(t *rapid.T, old any, s *structural.Structural, here []string) any {
	switch rapid.SampledFrom([]int{0, 0, 0, 0, 0, 1, 2, 3, 4}).Draw(t, "change") {
	case 1:
		return absent
	case 2:
		return pick(t, misfits)
	case 3: // an entry once more
		if items, ok := old.(list); ok && len(items) > 0 {
			return append(slices.Clone(items), items[0])
		}
	case 4: // a field that nobody knows
		if fields, ok := old.(object); ok && chance(t, 3) {
			fields = cloned(fields)
			fields["bogus"] = 1
			return fields
		}
	}
	return m.value(t, s, here)
}

// value makes a value of a schema: its shape is right, its words may not be.
func (m *maker) value(t *rapid.T, s *structural.Structural, here []string) any {
	switch {
	case s.ValueValidation != nil && len(s.ValueValidation.Enum) > 0:
		values := list{"", "none", 0}
		for _, v := range s.ValueValidation.Enum {
			values = append(values, v.Object, v.Object)
		}
		return pick(t, values)
	case s.Items != nil:
		items := list{}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			items = append(items, m.value(t, s.Items, here))
		}
		return items
	case s.AdditionalProperties != nil:
		entries := object{}
		for range rapid.IntRange(0, 2).Draw(t, "entries") {
			entries[m.key(t, here, nil)] = m.value(t, s.AdditionalProperties.Structural, here)
		}
		return entries
	case s.Type == "object":
		fields := object{}
		for _, name := range sortedKeys(s.Properties) {
			if child := s.Properties[name]; chance(t, 2) {
				fields[name] = m.value(t, &child, append(slices.Clone(here), name))
			}
		}
		return fields
	case s.Type == "integer":
		return pick(t, numbers)
	case s.Type == "boolean":
		return pick(t, booleans)
	default:
		return m.word(t, here)
	}
}

func (m *maker) word(t *rapid.T, here []string) any {
	path := strings.Join(here, ".")
	if strings.HasSuffix(path, "egress.hosts") {
		namespace, host := pick(t, egressNamespaces).(string), pick(t, append(list{"*", "*.a.example", ""}, hosts...)).(string)
		if chance(t, 10) {
			return namespace + host
		}
		return namespace + "/" + host
	}
	for i := range here {
		if w := wordsFor[strings.Join(here[i:], ".")]; w != nil {
			return pick(t, w)
		}
	}
	return pick(t, words)
}

func (m *maker) key(t *rapid.T, here []string, entries object) string {
	if len(entries) > 0 && chance(t, 2) {
		return rapid.SampledFrom(sortedKeys(entries)).Draw(t, "key")
	}
	return pick(t, keysFor[here[len(here)-1]]).(string)
}

func spoilMetadata(t *rapid.T, at any) any {
	metadata := cloned(at)
	switch rapid.IntRange(0, 7).Draw(t, "metadata") {
	case 0:
		metadata["labels"] = object{pick(t, append(list{"istio.io/use-waypoint"}, labelKeys...)).(string): pick(t, append(list{"None", "gate"}, labelValues...))}
	case 1:
		metadata["annotations"] = object{pick(t, append(list{
			"istio.io/dry-run", "internal.istio.io/parents", "internal.istio.io/parent-namespace", "internal.istio.io/webhook-always-reject", "networking.istio.io/exportTo", "EXAMPLE.com/a",
		}, labelKeys...)).(string): pick(t, words)}
	case 2:
		metadata["name"] = pick(t, list{"a", "a.b", "A", "", "a..b", "-a", "a_b", "1", 1, nil, "a/b", x(64), x(253), x(254)})
	case 3:
		metadata["namespace"] = pick(t, list{"a", "", nil, "a.b", "A", "-", 1, "1", x(63), x(64)})
	case 4:
		metadata["creationTimestamp"] = pick(t, list{nil, "", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.678+01:00", "2026-01-02", bare("2026-01-02T03:04:05Z"), 1, "x"})
	case 5:
		metadata[pick(t, list{"bogus", "label", "clusterName", "Name"}).(string)] = "x"
	case 6:
		metadata["resourceVersion"], metadata["generation"], metadata["uid"] = "1", 2, "u"
		metadata["finalizers"], metadata["managedFields"] = list{"a/b"}, list{}
	default:
		metadata[pick(t, list{"labels", "annotations"}).(string)] = pick(t, misfits)
	}
	return metadata
}

// cloned returns a copy of a map; an empty one if it is none.
func cloned(v any) object {
	out := object{}
	if fields, ok := v.(object); ok {
		maps.Copy(out, fields)
	}
	return out
}

func pick(t *rapid.T, from list) any { return rapid.SampledFrom(from).Draw(t, "word") }

// usual picks one of the first n words, which are right.
func usual(t *rapid.T, from list, n int) any { return pick(t, from[:n]) }

// chance is true once in n.
func chance(t *rapid.T, n int) bool { return rapid.IntRange(1, n).Draw(t, "chance") == n }
