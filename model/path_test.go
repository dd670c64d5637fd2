package model_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
)

func TestAPathIsAListOfNames(t *testing.T) {
	t.Parallel()
	var p model.Path
	for i, name := range []string{"east", "west", "north-east_1.a"} {
		if p.Len() != i || p.Has(name) || p.Has("") {
			t.Errorf("%q has %d names, and has %q is %t", p, p.Len(), name, p.Has(name))
		}
		longer := p.Via(name)
		if longer.Len() != i+1 || !longer.Has(name) || longer.Last() != name || p.Compare(longer) >= 0 || longer.Compare(p) <= 0 {
			t.Errorf("%q passed on by %s is %q", p, name, longer)
		}
		p = longer
	}
	if names := slices.Collect(p.Names()); !slices.Equal(names, []string{"east", "west", "north-east_1.a"}) {
		t.Errorf("its names are %q", names)
	}
	if p.Has("as") || p.Has("east,west") || model.Path("z").Compare("a,b") >= 0 || model.Path("").Last() != "" {
		t.Error("a part of a name is taken for a name")
	}
	if got, err := model.ParsePath(string(p)); got != p || err != nil {
		t.Errorf("it is read as %q, %v", got, err)
	}
	for _, wrong := range []string{",", "a,", ",a", "a b", "a;b", "ä", strings.Repeat("x", 64), strings.Repeat("a,", model.MostPath) + "a"} {
		if got, err := model.ParsePath(wrong); err == nil {
			t.Errorf("%q is read as %q", wrong, got)
		}
	}
}

// Earlier versions named the instance that wrote a record in each record.
func TestRecordsOfEarlierVersionsAreRead(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"kind":"Endpoint","key":{"source":"files","namespace":"shop","name":"cart/10.0.0.1"},"uid":"01000000000000000000000000000000","revision":3,"generation":1,` +
			`"owner":{"kind":"Service","key":{"source":"files","namespace":"shop","name":"cart"}},"origin":"isthmus","spec":{"address":"10.0.0.1"}}`,
		`{"kind":"Service","key":{"source":"files","namespace":"shop","name":"cart"},"uid":"01000000000000000000000000000000","revision":3,"generation":1,"origin":"isthmus",` +
			`"place":"shop.yaml","spec":{"hosts":["cart.example"],"location":"MESH_INTERNAL","resolution":"STATIC"}}`,
	} {
		r, err := model.Decode([]byte(text))
		if err != nil || r.Path != "" || r.Revision != 3 || r.Source != "files" || r.Spec == nil {
			t.Errorf("read as %+v, %v", r, err)
		}
	}
}
