package catalog_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// A workload is shown whether or not a service selects it, and of one name the first
// source's.
func TestWorkloadsOfOneNameAreThoseOfTheFirstSource(t *testing.T) {
	t.Parallel()
	at := func(source, address string) model.Record {
		return model.Record{Ref: ref(model.KindWorkload, source, "vm"), Spec: model.Workload{Endpoint: model.Endpoint{Address: address}}}
	}
	key := catalog.WorkloadKey{Namespace: "ns", Name: "vm"}
	b := catalog.NewBuilder([]string{"first", "second"})
	united := catalog.Change{}
	for i, step := range []struct {
		event model.Event
		want  string // the address; empty if there is none
		says  bool   // something changed
	}{
		{model.Upsert{Record: at("second", "10.0.0.2")}, "10.0.0.2", true},
		{model.Upsert{Record: at("first", "10.0.0.1")}, "10.0.0.1", true},
		{model.Upsert{Record: at("first", "10.0.0.1")}, "10.0.0.1", false},
		{model.Delete{Record: at("first", "")}, "10.0.0.2", true},
		{model.Delete{Record: at("second", "")}, "", true},
	} {
		change := b.Apply(uint64(i+1), []model.Event{step.event})
		got := ""
		if w, ok := b.Snapshot().Workload(key); ok {
			got = w.Endpoint.Address
		}
		keys := slices.Collect(maps.Keys(change.Workloads))
		if got != step.want || step.says != slices.Equal(keys, []catalog.WorkloadKey{key}) || step.says == change.Empty() {
			t.Errorf("step %d: it is at %q, and %v changed", i, got, keys)
		}
		united = united.Then(change)
		if n := len(slices.Collect(b.Snapshot().Workloads())); (n == 1) != (step.want != "") {
			t.Errorf("step %d: there are %d", i, n)
		}
	}
	if !united.Empty() {
		t.Errorf("what came and went is left as %v", united)
	}
}
