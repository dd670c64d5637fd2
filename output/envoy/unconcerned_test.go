package envoy_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy"
)

// What the catalog shows and no resource of Envoy is made of causes no look at
// any client.
func TestWhatNoResourceIsMadeOfIsNoChange(t *testing.T) {
	key := model.Key{Source: "s", Namespace: "a", Name: "n"}
	described := func(meta model.Meta) model.Spec {
		return model.Service{
			Meta: meta, Hosts: model.ListOf("h"), Resolution: model.ResolutionStatic,
			Ports: model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}),
		}
	}
	pair := model.MapOf(map[string]string{"a": "b"})
	for name, test := range map[string]struct {
		kind          model.Kind
		before, after model.Spec
	}{
		"labels":          {model.KindService, described(model.Meta{}), described(model.Meta{Labels: pair})},
		"annotations":     {model.KindService, described(model.Meta{Annotations: pair}), described(model.Meta{})},
		"what is carried": {"VirtualService", model.Opaque{Content: "{}"}, model.Opaque{Content: "[]"}},
	} {
		t.Run(name, func(t *testing.T) {
			builder := catalog.NewBuilder(nil)
			put := func(revision uint64, spec model.Spec) catalog.Change {
				record := model.Record{Ref: model.Ref{Kind: test.kind, Key: key}, Spec: spec}
				return builder.Apply(revision, []model.Event{model.Upsert{Record: record}})
			}
			put(1, test.before)
			change := put(2, test.after)
			if change.Empty() {
				t.Fatal("the catalog takes no notice of it")
			}
			if got := envoy.Changes(builder.Snapshot(), change); len(got) > 0 {
				t.Errorf("resources may have changed: %+v", got)
			}
			if got := envoy.Reviewed(change, "root"); len(got) > 0 {
				t.Errorf("views of %v are looked at again", got)
			}
		})
	}
}
