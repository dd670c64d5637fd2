package verdicts

import (
	"flag"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/convert/istio"
)

// nulls is how many documents have null at each field. There are a hundred fields.
const nulls = "25"

// A field that is null is as good as absent, in every form, unless a list belongs
// there: then the document is rejected. An entry of a list is not a field.
func TestNullIsAbsentOrNoList(t *testing.T) {
	checks := flag.Lookup("rapid.checks")
	before := checks.Value.String()
	defer func() { _ = checks.Value.Set(before) }()
	if err := checks.Value.Set(nulls); err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		m := newMaker(theirs[kind])
		for _, path := range m.paths {
			testNull(t, m, path)
		}
	}
}

func testNull(t *testing.T, m *maker, path []string) {
	t.Helper()
	rapid.Check(t, func(r *rapid.T) {
		spec := valid[m.kind](r)
		with := func(value any) []byte {
			return render(object{
				"apiVersion": group + "/v1", "kind": m.kind, "metadata": object{"name": "x"},
				"spec": changed(spec, path, value),
			})
		}
		null := with(nil)
		agree(r, null)
		if lists := nullLists(object{"spec": changed(spec, path, nil)}, theirs[m.kind].schema, ""); len(lists) > 0 {
			if got := ours(r, null); got == "" {
				r.Fatalf("null is taken for the lists %v\n%s", lists, short(null))
			}
		} else if path[len(path)-1] != "*" {
			same(r, "a document without the field", null, first(null), first(with(absent)))
		}
	})
}

func first(text []byte) istio.Reading {
	for r := range istio.Read(text) {
		return r
	}
	return istio.Reading{}
}

// changed returns a copy in which a field has a value, in each entry of the lists
// and maps on the way. What leads there is not made.
func changed(at any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	switch at := at.(type) {
	case list:
		items := slices.Clone(at)
		for i := range items {
			items[i] = changed(items[i], path[1:], value)
		}
		return items
	case object:
		fields := cloned(at)
		for name := range fields {
			if path[0] == "*" {
				fields[name] = changed(fields[name], path[1:], value)
			}
		}
		if _, there := fields[path[0]]; there || len(path) == 1 && path[0] != "*" {
			fields[path[0]] = changed(fields[path[0]], path[1:], value)
			if fields[path[0]] == absent {
				delete(fields, path[0])
			}
		}
		return fields
	default:
		return at
	}
}
