package plan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/translate"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// BenchmarkChange is what a change of one endpoint costs: to plan it, to make what is
// written for it, to see that written, and to look at it once more, as it is when a watch
// shows it. It tells the bytes of the object that is written.
func BenchmarkChange(b *testing.B) {
	for _, form := range []translate.Form{translate.Inline, translate.WorkloadEntries} {
		for _, instances := range []int{50, 500, 5000, 20_000} {
			b.Run(fmt.Sprintf("%s/%d", form, instances), func(b *testing.B) { benchmarkChange(b, form, instances) })
		}
	}
}

func benchmarkChange(b *testing.B, form translate.Form, instances int) {
	builder := catalog.NewBuilder(nil)
	events := []model.Event{shop.Service("sc", "a.example")}
	for i := range instances {
		events = append(events, shop.InstanceOf("sc", "a.example", shop.Busy(i, "v1")))
	}
	w := newStepwise(translate.Settings{Instance: "test", ShardSize: 100, Endpoints: form})
	bytes, key := 0, object.Key{Kind: object.ServiceEntry, Namespace: "shop", Name: "a.example"}
	look := func() (written int) {
		actions := w.Plan(w.facts(), key).Actions
		todo := slices.DeleteFunc(MovesOf(actions).Order(actions), func(a Action) bool { return a.Verb == Leave })
		UrgencyOf(todo)
		for _, a := range todo {
			written, bytes = written+1, w.does(b, a)
		}
		return written
	}
	builder.Apply(1, events)
	w.publishes(builder.Snapshot(), catalog.Change{}, true)
	for look() > 0 || w.memory.of(key) == nil { // to the form of WorkloadEntries, there are stages
		continue
	}
	b.ReportAllocs()
	revision := uint64(1)
	for b.Loop() {
		revision++
		change := builder.Apply(revision, []model.Event{shop.InstanceOf("sc", "a.example", shop.Busy(7, fmt.Sprint("v", revision)))})
		w.publishes(builder.Snapshot(), change, true)
		if n := look(); n != 1 {
			b.Fatalf("%d objects are written", n)
		}
		if n := look(); n != 0 {
			b.Fatalf("%d objects are written again", n)
		}
	}
	b.ReportMetric(float64(bytes), "written-B")
}
