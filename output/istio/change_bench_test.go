package istio

import (
	"fmt"
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// BenchmarkChange is what a change of one endpoint costs: to plan it, to make what is
// written for it, to see that written, and to look at it once more, as it is when a watch
// shows it. It tells the bytes of the object that is written.
func BenchmarkChange(b *testing.B) {
	for _, form := range []Form{Inline, WorkloadEntries} {
		for _, instances := range []int{50, 500, 5000, 20_000} {
			b.Run(fmt.Sprintf("%s/%d", form, instances), func(b *testing.B) { benchmarkChange(b, form, instances) })
		}
	}
}

func benchmarkChange(b *testing.B, form Form, instances int) {
	builder := catalog.NewBuilder(nil)
	events := []model.Event{service("sc", "a.example")}
	for i := range instances {
		events = append(events, instanceOf("sc", "a.example", busy(i, "v1")))
	}
	c := DefaultConfig()
	c.Endpoints = form
	w := newStepwise(b, c)
	bytes, key := 0, Key{ServiceEntry, "shop", "a.example"}
	look := func() (written int) {
		world := w.look()
		t, actions := w.actions(world, key)
		w.ledger.planned(key, t, actions)
		todo := slices.DeleteFunc(movesOf(actions).order(actions), func(a Action) bool { return a.Verb == Leave })
		urgencyOf(todo)
		for _, a := range todo {
			written, bytes = written+1, w.does(b, a)
		}
		return written
	}
	builder.Apply(1, events)
	w.Publish(builder.Snapshot(), catalog.Change{}, true)
	for look() > 0 || w.followed.of(key) == nil { // to the form of WorkloadEntries, there are stages
		continue
	}
	b.ReportAllocs()
	revision := uint64(1)
	for b.Loop() {
		revision++
		change := builder.Apply(revision, []model.Event{instanceOf("sc", "a.example", busy(7, fmt.Sprint("v", revision)))})
		w.Publish(builder.Snapshot(), change, true)
		if n := look(); n != 1 {
			b.Fatalf("%d objects are written", n)
		}
		if n := look(); n != 0 {
			b.Fatalf("%d objects are written again", n)
		}
	}
	b.ReportMetric(float64(bytes), "written-B")
}

// busy is an endpoint with as much said of it as is usual.
func busy(i int, version string) model.Endpoint {
	return model.Endpoint{
		Address: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), Locality: model.Locality{Region: "r", Zone: "z"}, Weight: 10,
		Labels: model.MapOf(map[string]string{"app": "a", "version": version, "instanceId": fmt.Sprintf("%032x", i)}),
	}
}
