package istio

import "time"

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
	// HandOver is what would be done to an object of the earlier bridge, which is left
	// alone, if it had our labels: Update or Delete. Only [Writer.Plan] tells it.
	HandOver Verb

	want Object   // unless the verb is Delete
	have Observed // unless the verb is Create
	wait wait     // what it is left for, if it is not as it should be
}

// key is the one that the action is a part of.
func (a Action) key() Key {
	switch {
	case a.Kind == Sidecar:
		return Key(a.Ref)
	case a.Verb == Delete:
		return a.have.about()
	}
	return Key{ServiceEntry, a.Namespace, a.want.Annotations[annotationService]}
}

// wait is why an object is left though it should change or go; it has no reason
// if nothing speaks against that.
type wait struct {
	reason    string
	endpoints int       // that it would lose
	since     time.Time // zero if that is not known
}

// plan compares what there should be of one key with what there is. waits tells
// why an object may neither be deleted nor changed, for a change may take
// something away. Nor is one deleted while another of the key is kept from
// changing: endpoints that move would be in neither.
func plan(want []Object, have []Observed, waits func(Observed) wait) []Action {
	var actions []Action
	var held wait // why an object that should change stays as it is
	wanted, there := make(map[Ref]bool, len(want)), make(map[Ref]int, len(have))
	for i := range have {
		there[have[i].Ref] = i
	}
	for _, o := range want {
		wanted[o.Ref()] = true
		at, ok := there[o.Ref()]
		if !ok {
			actions = append(actions, Action{Verb: Create, Ref: o.Ref(), Reason: "it is missing", want: o.whole()})
			continue
		}
		a := compare(o, have[at], waits)
		if a.wait.reason != "" {
			held = a.wait
		}
		actions = append(actions, a)
	}
	for _, h := range have {
		if wanted[h.Ref] {
			continue
		}
		a := Action{Verb: Delete, Ref: h.Ref, Reason: "nothing speaks of it any more", have: h}
		if a.wait = waits(h); a.wait.reason == "" && held.reason != "" {
			a.wait = wait{reason: held.reason, since: held.since} // the other may have to take in what is in this one
		}
		if a.wait.reason != "" {
			a.Verb, a.Reason = Leave, a.wait.reason
		}
		actions = append(actions, a)
	}
	inOrder := make([]Action, 0, len(actions))
	for _, now := range []func(Action) bool{
		isVerb(Create), isVerb(Update),
		func(a Action) bool { return a.Verb == Delete && !a.have.isDefinition() },
		func(a Action) bool { return a.Verb == Delete && a.have.isDefinition() }, // while others are there it counts
		isVerb(Leave),
	} {
		for i := range actions {
			if now(actions[i]) {
				inOrder = append(inOrder, actions[i])
			}
		}
	}
	return inOrder
}

func isVerb(v Verb) func(Action) bool { return func(a Action) bool { return a.Verb == v } }

func compare(o Object, h Observed, waits func(Observed) wait) Action {
	a := Action{Verb: Leave, Ref: o.Ref(), Reason: "it is as it should be", want: o, have: h}
	field := o.differs(h)
	if field == "" {
		return a
	}
	a.want = o.whole()
	if a.wait = waits(h); a.wait.reason != "" {
		a.Reason = a.wait.reason
		return a
	}
	a.Verb, a.Reason = Update, field+" differs"
	return a
}
