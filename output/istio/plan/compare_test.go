package plan

import (
	"maps"
	"slices"
	"testing"

	networking "istio.io/api/networking/v1alpha3"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/output/istio/object"
)

// Whatever there is and whatever there should be: what comes is there before
// what it replaces goes, nothing in order is touched, and nothing goes whose
// source has not been listed.
func TestPlanKeepsItsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
		made := func(name, says string) object.Object {
			return object.Object{
				Kind: object.ServiceEntry, Namespace: "shop", Name: name, Labels: object.Marks("test"), Annotations: map[string]string{object.AnnotationSources: "first,second"},
				Spec: &networking.ServiceEntry{Hosts: []string{says}},
			}
		}
		want, have := map[string]object.Object{}, map[string]object.Observed{}
		for range rapid.IntRange(0, 5).Draw(t, "wanted") {
			n := name.Draw(t, "name")
			want[n] = made(n, rapid.SampledFrom([]string{"x", "y"}).Draw(t, "says"))
		}
		for range rapid.IntRange(0, 5).Draw(t, "present") {
			o := made(name.Draw(t, "name"), rapid.SampledFrom([]string{"x", "y"}).Draw(t, "says"))
			if rapid.Bool().Draw(t, "of the first") {
				o.Annotations = map[string]string{object.AnnotationSources: "first"}
			}
			have[o.Name] = object.Observed{Ref: o.Ref(), Labels: o.Labels, Annotations: o.Annotations, Spec: o.Fingerprint()}
		}
		primed := rapid.Bool().Draw(t, "primed")
		confirmed := func(h object.Observed) bool { return primed || h.Annotations[object.AnnotationSources] == "first" }
		actions := Compare(slices.Collect(maps.Values(want)), slices.Collect(maps.Values(have)), func(h object.Observed) Wait {
			if confirmed(h) {
				return Wait{}
			}
			return Wait{Reason: "it waits for its source"}
		})
		held := false // what is to change, and may not
		for n, o := range want {
			h, present := have[n]
			held = held || present && !confirmed(h) && o.Differs(h) != ""
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
			case wanted && o.Differs(h) != "" && confirmed(h):
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

// An object that is held, since a source that it is made of has not been listed,
// takes nothing in; so nobody loses what is to go into it.
func TestWhoeverMayNotMoveYetStays(t *testing.T) {
	t.Parallel()
	entry := func(name string, addresses ...string) object.Object {
		spec := &networking.ServiceEntry{}
		for _, address := range addresses {
			spec.Endpoints = append(spec.Endpoints, &networking.WorkloadEntry{Address: address})
		}
		return object.Object{Kind: object.ServiceEntry, Namespace: "shop", Name: name, Spec: spec}
	}
	has := func(o object.Object, sources string) object.Observed {
		return object.Observed{
			Ref: o.Ref(), Annotations: map[string]string{object.AnnotationSources: sources}, Spec: o.Fingerprint(), Members: object.MembersOf(o.Spec),
		}
	}
	actions := Compare(
		[]object.Object{entry("a", "10.0.0.1"), entry("b", "10.0.0.2", "10.0.0.3")},
		[]object.Observed{has(entry("a", "10.0.0.1", "10.0.0.2"), "sc"), has(entry("b", "10.0.0.3", "10.0.0.4"), "late")},
		func(o object.Observed) (w Wait) {
			if slices.Contains(o.Sources(), "late") {
				w.Reason = "its source has not been listed"
			}
			return w
		},
	)
	var verbs []Verb
	m := MovesOf(actions)
	for _, a := range m.Order(actions) {
		verbs = append(verbs, a.Verb)
	}
	if !slices.Equal(verbs, []Verb{Update, Leave}) {
		t.Fatalf("planned: %v", verbs)
	}
	keep := m.Kept(actions[0].Ref, map[object.Ref]object.Observed{})
	if moving := object.MemberOf(&networking.WorkloadEntry{Address: "10.0.0.2"}).Address(); len(keep) != 1 || !keep[moving] {
		t.Errorf("%d addresses are kept, want that of 10.0.0.2", len(keep))
	}
}
