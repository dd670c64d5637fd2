package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/translate"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// Whatever becomes of a large service and of its objects, in whichever form and between
// them: what is planned from what may have changed since the last look is what is
// planned from nothing, object by object, byte for byte and in the same order.
func TestPlanFromWhatChangedIsThePlanFromNothing(t *testing.T) {
	t.Parallel()
	partly := map[translate.Form]int{}
	rapid.Check(t, func(t *rapid.T) {
		h := newCourse(t)
		for range rapid.IntRange(5, 16).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				h.drift(t)
			case 1:
				h.skip(t)
			case 2, 3:
				h.publish(t)
			default:
				h.publish(t)
				h.step(t)
			}
		}
		for form, n := range h.partly {
			partly[form] += n
		}
	})
	for _, form := range []translate.Form{translate.Inline, translate.WorkloadEntries, translate.Auto} {
		if partly[form] == 0 {
			t.Errorf("no look was at what had changed alone, with endpoints: %s", form)
		}
	}
}

// course is that of a service, of its objects and of who writes them.
type course struct {
	*stepwise
	builder  *catalog.Builder
	revision uint64
	form     translate.Form
	partly   map[translate.Form]int
}

var courseKey = object.Key{Kind: object.ServiceEntry, Namespace: "shop", Name: "a.example"}

func newCourse(t *rapid.T) *course {
	c := translate.Settings{Instance: "test"}
	c.Endpoints = rapid.SampledFrom([]translate.Form{translate.Inline, translate.WorkloadEntries, translate.Auto}).Draw(t, "form")
	c.ShardSize, c.Above = rapid.SampledFrom([]int{4, 10, 1000}).Draw(t, "shard size"), 45
	h := &course{newStepwise(c), catalog.NewBuilder([]string{"sc", "second"}), 1, c.Endpoints, map[translate.Form]int{}}
	events := []model.Event{shop.Service("sc", "a.example"), shop.Service("sc", "b.example")}
	for i := range rapid.IntRange(33, 60).Draw(t, "endpoints") {
		events = append(events, shop.InstanceOf("sc", "a.example", shop.Busy(i, "v1")))
	}
	h.builder.Apply(1, events)
	h.publishes(h.builder.Snapshot(), catalog.Change{}, true)
	for range rapid.SampledFrom([]int{0, 2, 6, 6, 6, 6}).Draw(t, "looks at first") { // six take it into any form
		h.stepAnd(t, func() bool { return true })
	}
	return h
}

// draw draws changes of the catalog.
func (h *course) draw(t *rapid.T) catalog.Change {
	h.revision++
	var events []model.Event
	for range rapid.IntRange(1, 3).Draw(t, "changes") {
		e := shop.DrawEvent(t)
		if up, ok := e.(model.Upsert); ok && up.Record.Kind == model.KindService && rapid.IntRange(0, 4).Draw(t, "redefined") > 0 {
			continue // else most looks would be at the whole
		}
		events = append(events, e)
	}
	if rapid.IntRange(0, 15).Draw(t, "of another source") == 0 {
		e := shop.Busy(rapid.IntRange(0, 60).Draw(t, "endpoint"), "of another")
		events = append(events, shop.Service("second", "a.example"), shop.InstanceOf("second", "a.example", e))
	}
	return h.builder.Apply(h.revision, events)
}

// publish has the writer take a change, and now and then before all sources are known.
func (h *course) publish(t *rapid.T) {
	change := h.draw(t)
	h.publishes(h.builder.Snapshot(), change, rapid.IntRange(0, 9).Draw(t, "incomplete") > 0)
}

// skip has the writer miss a change.
func (h *course) skip(t *rapid.T) {
	h.draw(t)
	h.publish(t)
}

// drift has somebody else change an object, or make one in our name.
func (h *course) drift(t *rapid.T) {
	all := h.stored.Of(courseKey)
	if len(all) == 0 {
		return
	}
	at := rapid.IntRange(-len(all)/2, len(all)-1).Draw(t, "object") // often the first, which tells the form
	o := all[max(at, 0)]
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"hosts": []any{"a.example"}}}}
	u.SetNamespace("shop")
	u.SetName(o.Name)
	u.SetLabels(maps.Clone(o.Labels))
	u.SetAnnotations(maps.Clone(o.Annotations))
	switch rapid.IntRange(0, 5).Draw(t, "drift") {
	case 0:
		u = nil
	case 1:
		u.SetAnnotations(nil)
	case 2: // it is wanted by another key, or by none
		o.Name = rapid.SampledFrom([]string{"b.example", "c.example", "a.example-c"}).Draw(t, "name")
		u.SetName(o.Name)
	case 3:
		o.Kind = object.WorkloadEntry
	}
	h.watch(t, o.Ref, u)
}

// step plans in both ways, and carries out some of it.
func (h *course) step(t *rapid.T) {
	h.stepAnd(t, func() bool { return rapid.IntRange(0, 9).Draw(t, "done") > 0 })
}

func (h *course) stepAnd(t *rapid.T, done func() bool) {
	fresh := New(h.settings, h.stored, h.waits.Long)
	fresh.waits.all = maps.Clone(h.waits.all)
	all := fresh.Plan(h.facts(), courseKey)
	some := h.Plan(h.facts(), courseKey)
	want, got := all.Actions, some.Actions
	if some.Partly {
		h.partly[h.form]++
	}
	if is, should := textsOf(t, got), textsOf(t, want); !slices.Equal(is, should) || !slices.Equal(some.LeftOut, all.LeftOut) {
		t.Fatalf("planned is\n%v\nleft out %v, want\n%v\nleft out %v", is, some.LeftOut, should, all.LeftOut)
	}
	for _, a := range got {
		if a.Verb != Leave && done() {
			h.does(t, a)
		}
	}
}

// textsOf has what is to be done, or is not done though it should be.
func textsOf(t *rapid.T, actions []Action) (all []string) {
	for _, a := range actions {
		if a.Verb == Leave && a.Wait.Reason == "" {
			continue
		}
		text := fmt.Sprint(a.Verb, a.Ref, a.Reason, a.Wait, a.Have.UID, a.Have.Version)
		if a.Want.Name != "" {
			manifest, err := json.Marshal(a.Want.Whole().Manifest())
			if err != nil {
				t.Fatal(err)
			}
			text += string(manifest)
		}
		all = append(all, text)
	}
	return all
}
