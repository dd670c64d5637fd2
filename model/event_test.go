package model_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
)

func TestFilterSelects(t *testing.T) {
	t.Parallel()
	ref := model.Ref{Kind: model.KindEndpoint, Key: model.Key{Source: "files", Namespace: "shop", Name: "cart/1"}}
	for name, test := range map[string]struct {
		filter model.Filter
		want   bool
	}{
		"all":                 {model.Filter{}, true},
		"everything right":    {model.Filter{Kind: "Endpoint", Source: "files", Namespace: "shop", Prefix: "cart/"}, true},
		"the whole name":      {model.Filter{Prefix: "cart/1"}, true},
		"more than the name":  {model.Filter{Prefix: "cart/10"}, false},
		"inside of the name":  {model.Filter{Prefix: "art"}, false},
		"another kind":        {model.Filter{Kind: "Service"}, false},
		"another source":      {model.Filter{Source: "file"}, false},
		"another namespace":   {model.Filter{Namespace: "sho"}, false},
		"one wrong of four":   {model.Filter{Kind: "Endpoint", Source: "files", Namespace: "shop", Prefix: "dart"}, false},
		"source as namespace": {model.Filter{Namespace: "files"}, false},
	} {
		if got := test.filter.Matches(ref); got != test.want {
			t.Errorf("%s: %+v selects %s: %t", name, test.filter, ref, got)
		}
	}
	if (model.Filter{Namespace: "shop"}).Matches(model.Ref{Kind: "Source", Key: model.Key{Source: "files", Name: "files"}}) {
		t.Error("a record of no namespace is selected by one")
	}
}

// A filter selects what each of its fields selects.
func TestFilterIsTheSumOfItsFields(t *testing.T) {
	t.Parallel()
	word := rapid.SampledFrom([]string{"", "a", "ab", "b"})
	rapid.Check(t, func(t *rapid.T) {
		f := model.Filter{
			Kind: model.Kind(word.Draw(t, "kind")), Source: word.Draw(t, "source"),
			Namespace: word.Draw(t, "namespace"), Prefix: word.Draw(t, "prefix"),
		}
		r := model.Ref{Kind: model.Kind(word.Draw(t, "its kind")), Key: model.Key{
			Source: word.Draw(t, "its source"), Namespace: word.Draw(t, "its namespace"), Name: word.Draw(t, "its name"),
		}}
		one := func(field, value string) bool { return field == "" || field == value }
		want := one(string(f.Kind), string(r.Kind)) && one(f.Source, r.Source) &&
			one(f.Namespace, r.Namespace) && strings.HasPrefix(r.Name, f.Prefix)
		if got := f.Matches(r); got != want {
			t.Fatalf("%+v selects %+v: %t", f, r, got)
		}
	})
}

// The orders of keys and references are total, and the same is equal.
func TestOrdersAreTotal(t *testing.T) {
	t.Parallel()
	word := rapid.SampledFrom([]string{"", "a", "b"})
	draw := rapid.Custom(func(t *rapid.T) model.Ref {
		return model.Ref{Kind: model.Kind(word.Draw(t, "kind")), Key: model.Key{
			Source: word.Draw(t, "source"), Namespace: word.Draw(t, "namespace"), Name: word.Draw(t, "name"),
		}}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := draw.Draw(t, "a"), draw.Draw(t, "b"), draw.Draw(t, "c")
		if (a.Compare(b) == 0) != (a == b) || a.Compare(b) != -b.Compare(a) {
			t.Fatalf("%+v and %+v compare %d and %d", a, b, a.Compare(b), b.Compare(a))
		}
		if a.Compare(b) <= 0 && b.Compare(c) <= 0 && a.Compare(c) > 0 {
			t.Fatalf("%+v, %+v and %+v are in no order", a, b, c)
		}
		if a.Kind == b.Kind && a.Compare(b) != a.Key.Compare(b.Key) {
			t.Fatalf("%+v and %+v compare otherwise than their keys", a, b)
		}
	})
}
