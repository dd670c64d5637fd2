package model_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
)

func TestNobodyCanChangeAList(t *testing.T) {
	t.Parallel()
	input := []string{"a", "b"}
	list := model.ListOf(input...)
	copied := list
	check := func(after string) {
		t.Helper()
		for _, l := range []model.List[string]{list, copied} {
			if got := slices.Collect(l.All()); !slices.Equal(got, []string{"a", "b"}) {
				t.Errorf("after %s the list holds %q", after, got)
			}
		}
	}
	input[0] = "x"
	check("a change of what it was made of")
	out := list.Slice()
	out[0] = "x"
	_ = append(out[:1], "y")
	check("a change of what it returned")
	other := list
	if err := json.Unmarshal([]byte(`["x"]`), &other); err != nil {
		t.Fatal(err)
	}
	check("decoding into a copy of it")
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	clear(text)
	check("a change of its encoding")
}

func TestNobodyCanChangeAMap(t *testing.T) {
	t.Parallel()
	input := map[string]string{"a": "1", "b": "2"}
	m := model.MapOf(input)
	want := maps.Clone(input)
	check := func(after string) {
		t.Helper()
		if got := maps.Collect(m.All()); !maps.Equal(got, want) {
			t.Errorf("after %s the map holds %q", after, got)
		}
	}
	input["a"] = "x"
	delete(input, "b")
	check("a change of what it was made of")
	out := m.Map()
	out["a"] = "x"
	delete(out, "b")
	check("a change of what it returned")
	other := m
	if err := json.Unmarshal([]byte(`{"a":"x"}`), &other); err != nil {
		t.Fatal(err)
	}
	check("decoding into a copy of it")
}

func TestOpaqueKeepsACopy(t *testing.T) {
	t.Parallel()
	content := []byte("content")
	opaque := model.OpaqueOf(content)
	content[0] = 'X'
	if opaque.Content != "content" {
		t.Errorf("the content became %q", opaque.Content)
	}
}

// A list is what a slice is, apart from changes.
func TestListIsASlice(t *testing.T) {
	t.Parallel()
	draw := rapid.SliceOfN(rapid.IntRange(0, 3), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		list, other := model.ListOf(a...), model.ListOf(b...)
		if list.Len() != len(a) || list.IsZero() != (len(a) == 0) {
			t.Fatalf("length %d, zero %t, of %v", list.Len(), list.IsZero(), a)
		}
		if got := list.Equal(other); got != slices.Equal(a, b) {
			t.Fatalf("%v equals %v: %t", a, b, got)
		}
		for i := range a {
			if list.At(i) != a[i] {
				t.Fatalf("at %d of %v: %d", i, a, list.At(i))
			}
		}
		for item := range 4 {
			if list.Contains(item) != slices.Contains(a, item) {
				t.Fatalf("%v contains %d: %t", a, item, list.Contains(item))
			}
		}
		for range list.All() {
			break // a reader may stop
		}
		sameJSON(t, list, append([]int{}, a...), &model.List[int]{})
	})
}

// A map is what a Go map is, apart from changes and in the order of its names.
func TestMapIsAMap(t *testing.T) {
	t.Parallel()
	draw := rapid.MapOfN(rapid.SampledFrom([]string{"", "a", "b", "c", "ü"}), rapid.IntRange(0, 2), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		m, other := model.MapOf(a), model.MapOf(b)
		if m.Len() != len(a) || m.IsZero() != (len(a) == 0) {
			t.Fatalf("length %d, zero %t, of %v", m.Len(), m.IsZero(), a)
		}
		if got := m.Equal(other); got != maps.Equal(a, b) {
			t.Fatalf("%v equals %v: %t", a, b, got)
		}
		included := true
		for name, value := range b {
			v, ok := a[name]
			included = included && ok && v == value
		}
		if m.Includes(other) != included {
			t.Fatalf("%v includes %v: %t", a, b, !included)
		}
		for _, name := range []string{"", "a", "b", "c", "ü", "d"} {
			got, ok := m.Get(name)
			if want, there := a[name]; got != want || ok != there {
				t.Fatalf("%q of %v: %d %t", name, a, got, ok)
			}
		}
		var names []string
		for name := range m.All() {
			names = append(names, name)
		}
		if !slices.Equal(names, slices.Sorted(maps.Keys(a))) {
			t.Fatalf("%v yields %q", a, names)
		}
		for range m.All() {
			break // a reader may stop
		}
		sameJSON(t, m, a, &model.Map[int]{})
	})
}

// sameJSON checks that v is encoded as plain is, and decoded into empty as it was.
func sameJSON[V any](t *rapid.T, v V, plain any, empty *V) {
	got, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(plain)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Fatalf("%v is encoded as %s, want %s", plain, got, want)
	}
	if err := json.Unmarshal(got, empty); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(v, *empty); diff != "" {
		t.Fatalf("decoding what was encoded (-was +is):\n%s", diff)
	}
}
