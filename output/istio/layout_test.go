package istio

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// fleetOf returns a service of so many instances.
func fleetOf(instances int, labels map[string]string) *catalog.Service {
	b := catalog.NewBuilder(nil)
	events := []model.Event{service("sc", "a.example")}
	for i := range instances {
		events = append(events, instanceOf("sc", "a.example", model.Endpoint{
			Address: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), Labels: model.MapOf(labels),
		}))
	}
	b.Apply(1, events)
	s, _ := b.Snapshot().Service(catalog.ServiceKey{Namespace: "shop", Host: "a.example"})
	return s
}

// content is what objects say, by name.
func content(objects []Object) map[string]fingerprint {
	all := map[string]fingerprint{}
	for _, o := range objects {
		all[o.Name] = o.fingerprint()
	}
	return all
}

// An instance that comes or goes rewrites one object, of however many.
func TestOneInstanceIsOneObject(t *testing.T) {
	c := DefaultConfig()
	c.ShardSize = 50
	names := map[string]bool{}
	exists := func(name string) bool { return names[name] }
	before := content(c.Translate("test", fleetOf(1000, nil), exists).Objects)
	for name := range before {
		names[name] = true
	}
	after := content(c.Translate("test", fleetOf(1001, nil), exists).Objects)
	changed := 0
	for name, says := range after {
		if before[name] != says {
			changed++
		}
	}
	if changed != 1 || len(before) != len(after) || len(before) != 32 {
		t.Errorf("%d of %d objects changed, there were %d", changed, len(after), len(before))
	}
}

// No object is larger than etcd takes, whatever endpoints say of themselves.
func TestObjectsFitIntoARequest(t *testing.T) {
	labels := map[string]string{}
	for i := range 60 {
		labels[fmt.Sprintf("label-%d", i)] = strings.Repeat("x", 60)
	}
	c := DefaultConfig()
	c.ShardSize = mostEndpoints
	objects := c.Translate("test", fleetOf(2500, labels), func(string) bool { return false }).Objects
	total := 0
	for _, o := range objects {
		total += len(o.Spec.(*networking.ServiceEntry).GetEndpoints())
		if size := len(manifestOf(t, o)); size > 3<<19 {
			t.Errorf("%s is %d bytes", o.Name, size)
		}
	}
	if total != 2500 || len(objects) < 8 {
		t.Errorf("%d endpoints in %d objects", total, len(objects))
	}
}

// Whatever there is and whatever there should be: what comes is there before
// what it replaces goes, nothing in order is touched, and nothing goes whose
// source has not been listed.
func TestPlanKeepsItsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
		object := func(name, says string) Object {
			return Object{
				Kind: ServiceEntry, Namespace: "shop", Name: name, Labels: marks("test"), Annotations: map[string]string{annotationSources: "first,second"},
				Spec: &networking.ServiceEntry{Hosts: []string{says}},
			}
		}
		want, have := map[string]Object{}, map[string]Observed{}
		for range rapid.IntRange(0, 5).Draw(t, "wanted") {
			n := name.Draw(t, "name")
			want[n] = object(n, rapid.SampledFrom([]string{"x", "y"}).Draw(t, "says"))
		}
		for range rapid.IntRange(0, 5).Draw(t, "present") {
			o := object(name.Draw(t, "name"), rapid.SampledFrom([]string{"x", "y"}).Draw(t, "says"))
			if rapid.Bool().Draw(t, "of the first") {
				o.Annotations = map[string]string{annotationSources: "first"}
			}
			have[o.Name] = Observed{Ref: o.Ref(), Labels: o.Labels, Annotations: o.Annotations, spec: o.fingerprint()}
		}
		primed := rapid.Bool().Draw(t, "primed")
		confirmed := func(h Observed) bool { return primed || h.Annotations[annotationSources] == "first" }
		actions := plan(slices.Collect(maps.Values(want)), slices.Collect(maps.Values(have)), func(h Observed) wait {
			if confirmed(h) {
				return wait{}
			}
			return wait{reason: "it waits for its source"}
		})
		held := false // what is to change, and may not
		for n, o := range want {
			h, present := have[n]
			held = held || present && !confirmed(h) && o.differs(h) != ""
		}
		last := 0
		for _, a := range actions {
			at := slices.Index([]Verb{Create, Update, Delete, Leave}, a.Verb)
			if at < last {
				t.Fatalf("%s comes after what is later: %v", a.Verb, actions)
			}
			last = at
			o, wanted := want[a.Name]
			h, present := have[a.Name]
			should := Leave
			switch {
			case wanted && !present:
				should = Create
			case wanted && o.differs(h) != "" && confirmed(h):
				should = Update
			case !wanted && confirmed(h) && !held:
				should = Delete
			}
			if a.Verb != should {
				t.Fatalf("%s %s (%s), should %s", a.Verb, a.Ref, a.Reason, should)
			}
		}
	})
}
