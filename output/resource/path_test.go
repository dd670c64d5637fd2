package resource_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/resource"
)

// Replicas of different names serve the same versions; another way to here is another version.
func TestTheOwnNameIsNoPartOfAVersion(t *testing.T) {
	t.Parallel()
	version := func(self string, path model.Path) (version, said string) {
		m := &made{t: t, builder: catalog.NewBuilder(nil), translator: resource.NewTranslator(resource.Collections(), resource.Options{Self: self})}
		s := service("first", "cart", "cart.example")
		e := endpoint(s, "10.0.0.1", model.Healthy)
		s.Path, e.Path = path, path
		m.apply(upserts(s, e)...)
		r, _ := m.entry(entries, "shop/cart")
		return r.Metadata.Version, r.Metadata.Annotations[istio.AnnotationPath]
	}
	one, by := version("one", "west")
	two, also := version("two", "west")
	if one != two || by != "west,one" || also != "west,two" {
		t.Errorf("versions are %s and %s, of what came by %q and %q", one, two, by, also)
	}
	if other, _ := version("one", "west,north"); other == one {
		t.Error("another path is no other version")
	}
	nameless, none := version("", "")
	if own, by := version("one", ""); own != nameless || by != "one" || none != "" {
		t.Errorf("what came from here has versions %s and %s, and says %q and %q", own, nameless, by, none)
	}
}

// Every kind of resource says how it came.
func TestEveryKindOfResourceHasItsPath(t *testing.T) {
	t.Parallel()
	m := &made{t: t, builder: catalog.NewBuilder(nil), translator: resource.NewTranslator(resource.Collections(), resource.Options{Self: "here"})}
	of := func(kind model.Kind, spec model.Spec) model.Record {
		return model.Record{Ref: model.Ref{Kind: kind, Key: model.Key{Source: "first", Namespace: "shop", Name: "a"}}, Path: "west", Spec: spec}
	}
	m.apply(upserts(
		of(model.KindScope, model.Scope{Hosts: model.ListOf("*/*")}),
		of(model.KindWorkload, model.Workload{Endpoint: model.Endpoint{Address: "10.0.0.1"}}),
		of("DestinationRule", model.Opaque{Type: "t", Content: "x"}),
		of("WorkloadGroup", model.Opaque{Content: `{"spec": {"template": {}}}`}),
	)...)
	for _, kind := range []string{"sidecars", "workloadentries", "destinationrules", "workloadgroups"} {
		r := m.in("istio/networking/v1alpha3/" + kind)["shop/a"]
		if got := r.GetMetadata().GetAnnotations()[istio.AnnotationPath]; got != "west,here" {
			t.Errorf("%s: it came by %q", kind, got)
		}
	}
}
