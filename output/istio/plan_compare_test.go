package istio

import (
	"maps"
	"slices"
	"testing"

	networking "istio.io/api/networking/v1alpha3"
	"pgregory.net/rapid"
)

// Whatever there is and whatever there should be: what comes is there before
// what it replaces goes, nothing in order is touched, and nothing goes whose
// source has not been listed.
func TestPlanKeepsItsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
		object := func(name, says string) Object {
			return Object{
				Kind: ServiceEntry, Namespace: "shop", Name: name, Labels: marks("test"), Annotations: map[string]string{AnnotationSources: "first,second"},
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
				o.Annotations = map[string]string{AnnotationSources: "first"}
			}
			have[o.Name] = Observed{Ref: o.Ref(), Labels: o.Labels, Annotations: o.Annotations, spec: o.fingerprint()}
		}
		primed := rapid.Bool().Draw(t, "primed")
		confirmed := func(h Observed) bool { return primed || h.Annotations[AnnotationSources] == "first" }
		actions := Compare(slices.Collect(maps.Values(want)), slices.Collect(maps.Values(have)), func(h Observed) Wait {
			if confirmed(h) {
				return Wait{}
			}
			return Wait{Reason: "it waits for its source"}
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

// An object that is held, since a source that it is made of has not been listed,
// takes nothing in; so nobody loses what is to go into it.
func TestWhoeverMayNotMoveYetStays(t *testing.T) {
	t.Parallel()
	entry := func(name string, addresses ...string) Object {
		spec := &networking.ServiceEntry{}
		for _, address := range addresses {
			spec.Endpoints = append(spec.Endpoints, &networking.WorkloadEntry{Address: address})
		}
		return Object{Kind: ServiceEntry, Namespace: "shop", Name: name, Spec: spec}
	}
	has := func(o Object, sources string) Observed {
		return Observed{
			Ref: o.Ref(), Annotations: map[string]string{AnnotationSources: sources}, spec: o.fingerprint(), members: MembersOf(o.Spec),
		}
	}
	actions := Compare(
		[]Object{entry("a", "10.0.0.1"), entry("b", "10.0.0.2", "10.0.0.3")},
		[]Observed{has(entry("a", "10.0.0.1", "10.0.0.2"), "sc"), has(entry("b", "10.0.0.3", "10.0.0.4"), "late")},
		func(o Observed) (w Wait) {
			if slices.Contains(o.sources(), "late") {
				w.Reason = "its source has not been listed"
			}
			return w
		},
	)
	var verbs []Verb
	m := MovesOf(actions)
	for _, a := range m.order(actions) {
		verbs = append(verbs, a.Verb)
	}
	if !slices.Equal(verbs, []Verb{Update, Leave}) {
		t.Fatalf("planned: %v", verbs)
	}
	keep := m.kept(actions[0].Ref, map[Ref]Observed{})
	if moving := MemberOf(&networking.WorkloadEntry{Address: "10.0.0.2"}).address(); len(keep) != 1 || !keep[moving] {
		t.Errorf("%d addresses are kept, want that of 10.0.0.2", len(keep))
	}
}
