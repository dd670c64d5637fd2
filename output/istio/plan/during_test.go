package plan

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/translate"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// readOnce is a store that calls a function after the next read of a key's objects.
type readOnce struct {
	cache.Indexer
	after func()
}

func (r *readOnce) ByIndex(index, value string) ([]any, error) {
	found, err := r.Indexer.ByIndex(index, value)
	if after := r.after; after != nil {
		r.after = nil
		after()
	}
	return found, err
}

// A large service counts as followed before its objects are read: what changes one of them
// during the comparison is not taken for in order.
func TestObjectThatChangesDuringItsPlanIsPlannedAgain(t *testing.T) {
	t.Parallel()
	builder := catalog.NewBuilder([]string{"sc"})
	events := []model.Event{shop.Service("sc", "a.example")}
	for i := range worthKnowing + 1 {
		events = append(events, shop.InstanceOf("sc", "a.example", shop.Busy(i, "v1")))
	}
	builder.Apply(1, events)
	s := newStepwise(translate.Settings{Instance: "test", Endpoints: translate.Inline, ShardSize: 1000})
	s.publishes(builder.Snapshot(), catalog.Change{}, true)
	for _, a := range s.Plan(s.facts(), courseKey).Actions {
		s.does(t, a)
	}

	s.Planner = New(s.settings, s.stored, time.Nanosecond) // of the next term
	written := s.stored.Of(courseKey)[0]
	s.stored.Stores[object.ServiceEntry] = &readOnce{s.stored.Stores[object.ServiceEntry], func() {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"hosts": []any{"a.example"}}}}
		u.SetNamespace(written.Namespace)
		u.SetName(written.Name)
		u.SetLabels(written.Labels)
		u.SetAnnotations(written.Annotations)
		s.watch(t, written.Ref, u)
	}}
	if first := s.Plan(s.facts(), courseKey).Actions; len(first) != 1 || first[0].Verb != Leave {
		t.Fatalf("the object was changed before it was read: %v", first)
	}
	if again := s.Plan(s.facts(), courseKey).Actions; len(again) != 1 || again[0].Verb != Update {
		t.Errorf("the changed object is not restored: %v", again)
	}
}
