package catalog_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/derived"
	"github.com/isthmus-mesh/isthmus/model"
)

// What a panic kept from being made of an index is made by whoever asks next.
func TestAPanicInWhatIsDerivedDoesNotStick(t *testing.T) {
	t.Parallel()
	b := catalog.NewBuilder([]string{"a"})
	spec := model.Service{Hosts: model.ListOf("x.example"), Ports: model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"})}
	record := model.Record{Ref: model.Ref{Kind: model.KindService, Key: model.Key{Source: "a", Namespace: "n", Name: "x"}}, Spec: spec, Revision: 1}
	b.Apply(1, []model.Event{model.Upsert{Record: record}})
	port := b.Snapshot().Port(80)
	if port == nil {
		t.Fatal("the port has no services")
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = port.Derive("key", func(derived.Change) (any, error) { panic("once") })
	}()
	made := 0
	for range 2 {
		if got, _ := port.Derive("key", func(derived.Change) (any, error) { made++; return "made", nil }); got != "made" {
			t.Errorf("it is %v", got)
		}
	}
	if made != 1 {
		t.Errorf("it was made %d times", made)
	}
}
