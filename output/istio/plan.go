package istio

import (
	"slices"
	"strings"
)

// Verb says what is done to an object.
type Verb string

// The verbs, in the order in which they are carried out for one key: what comes
// is there before what it replaces goes.
const (
	Create Verb = "create"
	Update Verb = "update"
	Delete Verb = "delete"
	Leave  Verb = "leave"
)

// Action is what is to be done to one object, and why.
type Action struct {
	Verb Verb
	Ref
	Reason string
	// Diff is what the writing changes in the specification: lines that begin with
	// a minus go, those that begin with a plus come. Only [Writer.Plan] tells it.
	Diff []string

	want Object   // unless the verb is Delete
	have Observed // unless the verb is Create
}

// plan compares what there should be of one key with what there is. primed
// tells whether a source may be believed about what is gone: while one of those
// that an object is made of may not, the object is neither deleted nor changed,
// for a change may take something away. Nor is one deleted while another of the
// key is kept from changing: endpoints that move would be in neither.
func plan(want []Object, have []Observed, primed func(source string) bool) []Action {
	var actions []Action
	var held string // why an object that should change stays as it is
	wanted := map[Ref]bool{}
	for _, o := range want {
		wanted[o.Ref()] = true
		at := slices.IndexFunc(have, func(h Observed) bool { return h.Ref == o.Ref() })
		if at < 0 {
			actions = append(actions, Action{Verb: Create, Ref: o.Ref(), Reason: "it is missing", want: o})
			continue
		}
		a := compare(o, have[at], primed)
		if a.Verb == Leave && o.differs(have[at]) != "" {
			held = a.Reason
		}
		actions = append(actions, a)
	}
	for _, h := range have {
		if wanted[h.Ref] {
			continue
		}
		a := Action{Verb: Delete, Ref: h.Ref, Reason: "nothing speaks of it any more", have: h}
		if waiting := unprimed(h, primed); waiting != "" {
			a.Verb, a.Reason = Leave, waiting
		} else if held != "" { // which may have to take in what is in this one
			a.Verb, a.Reason = Leave, held
		}
		actions = append(actions, a)
	}
	order := []Verb{Create, Update, Delete, Leave}
	slices.SortStableFunc(actions, func(a, b Action) int { return slices.Index(order, a.Verb) - slices.Index(order, b.Verb) })
	return actions
}

func compare(o Object, h Observed, primed func(string) bool) Action {
	a := Action{Verb: Leave, Ref: o.Ref(), Reason: "it is as it should be", want: o, have: h}
	field := o.differs(h)
	if field == "" {
		return a
	}
	if waiting := unprimed(h, primed); waiting != "" {
		a.Reason = waiting
		return a
	}
	a.Verb, a.Reason = Update, field+" differs"
	return a
}

// unprimed says which source an object waits for; empty if it waits for none.
func unprimed(h Observed, primed func(string) bool) string {
	if h.Annotations[annotationSources] == "" && !primed("") {
		return "it does not say which sources it is made of, and not all of them have been listed yet"
	}
	for name := range strings.SplitSeq(h.Annotations[annotationSources], ",") {
		if name != "" && !primed(name) {
			return "source " + name + ", which it is made of, has not been listed yet"
		}
	}
	return ""
}
