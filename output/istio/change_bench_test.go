package istio

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// BenchmarkChange is what a change of one endpoint costs: to plan it, and the
// bytes of the objects that are written for it.
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
	builder.Apply(1, events)
	key := Key{ServiceEntry, "shop", "a.example"}
	w := &Writer{config: DefaultConfig(), options: Options{Instance: "test"}}
	w.ledger.init()
	have := map[Ref]Observed{}
	bytes := 0
	plan := func(revision uint64) int {
		service, _ := builder.Snapshot().Service(catalog.ServiceKey{Namespace: "shop", Host: "a.example"})
		exists := func(name string) bool { _, ok := have[Ref{ServiceEntry, "shop", name}]; return ok }
		t := w.translate(key, service, form == WorkloadEntries, exists)
		list := make([]Observed, 0, len(have))
		for _, o := range have {
			list = append(list, o)
		}
		actions := plan(t.Objects, list, func(Observed) wait { return wait{} })
		w.ledger.planned(key, t, actions)
		todo := movesOf(actions).order(actions)
		urgencyOf(slices.DeleteFunc(slices.Clone(todo), func(a Action) bool { return a.Verb == Leave }))
		written := 0
		for _, a := range todo {
			if a.Verb == Leave {
				continue
			}
			text, err := json.Marshal(a.want.Manifest())
			if err != nil {
				b.Fatal(err)
			}
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON(text); err != nil {
				b.Fatal(err)
			}
			u.SetResourceVersion(strconv.FormatUint(revision, 10))
			have[a.Ref] = observedOf(a.Kind, u)
			written, bytes = written+1, len(text)
		}
		return written
	}
	plan(1)
	b.ReportAllocs()
	revision := uint64(1)
	for b.Loop() {
		revision++
		builder.Apply(revision, []model.Event{instanceOf("sc", "a.example", busy(7, fmt.Sprint("v", revision)))})
		if n := plan(revision); n != 1 {
			b.Fatalf("%d objects are written", n)
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
