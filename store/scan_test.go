package store

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
)

func treeOf(compare func(a, b model.Ref) int, refs ...model.Ref) records {
	editor := immutable.New[model.Ref, *model.Record](compare).Edit()
	for _, ref := range refs {
		editor.Set(ref, &model.Record{Ref: ref})
	}
	return editor.Map()
}

// A scan shows exactly what the filter matches, in order, whatever the names.
func TestAScanIsAFilter(t *testing.T) {
	t.Parallel()
	text := rapid.StringOfN(rapid.SampledFrom([]rune{0, 'a', 'b', '\uffff'}), 0, 3, -1)
	anyRef := rapid.Custom(func(t *rapid.T) model.Ref {
		return parts{text.Draw(t, "kind"), text.Draw(t, "source"), text.Draw(t, "namespace"), text.Draw(t, "name")}.ref()
	})
	rapid.Check(t, func(t *rapid.T) {
		refs := rapid.SliceOf(anyRef).Draw(t, "refs")
		like := anyRef
		if len(refs) > 0 {
			like = rapid.OneOf(anyRef, rapid.SampledFrom(refs))
		}
		chosen := like.Draw(t, "filter")
		f := model.Filter{Kind: chosen.Kind, Source: chosen.Source, Namespace: chosen.Namespace, Prefix: chosen.Name}
		if rapid.Bool().Draw(t, "any kind") {
			f.Kind = ""
		}
		if rapid.Bool().Draw(t, "any source") {
			f.Source = ""
		}
		if rapid.Bool().Draw(t, "any name") {
			f.Prefix = ""
		}
		tree := treeOf(model.Ref.Compare, refs...)
		var want, got []model.Ref
		for ref := range tree.All() {
			if f.Matches(ref) {
				want = append(want, ref)
			}
		}
		for r := range scan(tree, f) {
			got = append(got, r.Ref)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("filter %+v shows %v, want %v", f, got, want)
		}
	})
}

// The cost of a scan is in what it yields and the depth of the tree, not in
// the number of records that it passes by.
func TestAScanLeapsOverWhatItDoesNotShow(t *testing.T) {
	t.Parallel()
	var compared int
	counting := func(a, b model.Ref) int {
		compared++
		return a.Compare(b)
	}
	var refs []model.Ref
	for i := range 60_000 {
		kind := []model.Kind{model.KindEndpoint, model.KindService, model.KindWorkload}[i%3]
		refs = append(refs, model.Ref{Kind: kind, Key: model.Key{
			Source: fmt.Sprint("source-", i/3%4), Namespace: "default", Name: fmt.Sprintf("web-%d/%d", i/12/10, i/12%10),
		}})
	}
	tree := treeOf(counting, refs...)
	for what, c := range map[string]struct {
		f             model.Filter
		shown, atMost int
	}{
		"an object's own": {model.Filter{Kind: model.KindEndpoint, Source: "source-1", Namespace: "default", Prefix: "web-7/"}, 10, 50},
		"nothing":         {model.Filter{Kind: model.KindEndpoint, Source: "source-1", Namespace: "default", Prefix: "x"}, 0, 50},
		"of every kind":   {model.Filter{Source: "source-1", Namespace: "default", Prefix: "web-7/"}, 30, 300},
		"of every source": {model.Filter{Kind: model.KindEndpoint, Prefix: "web-7/"}, 40, 400},
	} {
		compared = 0
		shown := 0
		for range scan(tree, c.f) {
			shown++
		}
		if shown != c.shown || compared > c.atMost {
			t.Errorf("%s: %d records at the price of %d comparisons; want %d for at most %d", what, shown, compared, c.shown, c.atMost)
		}
	}
}
