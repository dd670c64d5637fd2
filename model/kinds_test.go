package model_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
)

// The table has every kind once, and each reads back the one type that it fits.
func TestEveryKindHasItsSpecification(t *testing.T) {
	t.Parallel()
	for kind, spec := range specs {
		for other, o := range specs {
			if got := kind.Fits(o); got != (kind == other) {
				t.Errorf("records of kind %s may say what %s says: %t", kind, other, got)
			}
		}
		if !model.IsSpec(spec) || kind.Understood() != (kind != novelty) {
			t.Errorf("%s: a specification: %t, understood: %t", kind, model.IsSpec(spec), kind.Understood())
		}
	}
	want := slices.DeleteFunc(slices.Sorted(maps.Keys(specs)), func(k model.Kind) bool { return k == novelty })
	if got := slices.Sorted(model.Kinds()); !slices.Equal(got, want) {
		t.Errorf("the kinds are %q, want %q", got, want)
	}
}

// foreign is no specification of the package's.
type foreign struct{}

func (foreign) EqualSpec(model.Spec) bool { return false }

func TestOnlyValuesAreSpecifications(t *testing.T) {
	t.Parallel()
	for _, spec := range []model.Spec{nil, foreign{}, &model.Service{}, &model.Opaque{}} {
		if model.IsSpec(spec) || model.KindService.Fits(spec) || novelty.Fits(spec) {
			t.Errorf("a %T is taken for a specification", spec)
		}
	}
}

func TestOnlyEndpointsComeWithAService(t *testing.T) {
	t.Parallel()
	for kind := range specs {
		for owner := range specs {
			want := kind == novelty || kind == model.KindEndpoint && owner == model.KindService ||
				kind == model.KindMergedEndpoint && owner == model.KindMergedService
			if got := kind.MayComeWith(owner); got != want {
				t.Errorf("%s comes with %s: %t", kind, owner, got)
			}
		}
	}
}

// What is carried comes back byte for byte, whatever its content looks like.
func TestOpaqueContentIsCarriedByteForByte(t *testing.T) {
	t.Parallel()
	meta := model.Meta{Labels: labels("a", "1"), Annotations: labels("b", "2")}
	for _, content := range []string{"", "{}", `{ "a" : 1 }`, `{"content":"e30="}`, `{"type":"t","content":"e30="}`, "\x00\xff", `"<"`, "null"} {
		for _, spec := range []model.Opaque{{Content: content}, {Type: "t", Content: content}, {Meta: meta, Content: content}} {
			r := model.Record{Ref: model.Ref{Kind: novelty, Key: model.Key{Source: "s", Name: "n"}}, Spec: spec}
			text, err := model.Encode(r)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := model.Decode(text); err != nil || !got.Spec.EqualSpec(spec) {
				t.Errorf("%+v comes back as %+v, %v from %s", spec, got.Spec, err, text)
			}
		}
	}
}
