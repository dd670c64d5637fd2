package istio

import (
	"slices"
	"time"
)

// Verb is an action on an object.
type Verb string

// The verbs, in the order in which they are carried out for one key: an object is created
// before the objects that it replaces are deleted.
const (
	Create Verb = "create"
	Update Verb = "update"
	Delete Verb = "delete"
	Leave  Verb = "leave"
)

// Action is the planned action on one object, with its reason.
type Action struct {
	Verb Verb
	Ref
	Reason string
	// Diff is the change of the specification: lines that begin with a minus are removed,
	// lines that begin with a plus added. Only [Writer.Plan] sets it.
	Diff []string
	// HandOver is the action on an object of the earlier bridge if it had our labels: Update
	// or Delete. Without them the object is left alone. Only [Writer.Plan] sets it.
	HandOver Verb

	want Object   // unless the verb is Delete
	have Observed // unless the verb is Create
	wait wait     // why the object is left unchanged, if it differs from the desired one
}

// key returns the key that the action belongs to.
func (a Action) key() Key {
	switch {
	case a.Kind == Sidecar:
		return Key(a.Ref)
	case a.Verb == Delete:
		return a.have.about()
	}
	return Key{ServiceEntry, a.Namespace, a.want.Annotations[annotationService]}
}

// wait is why an object that should change or be deleted is left; the reason is empty if
// the action may proceed.
type wait struct {
	reason    string
	endpoints int       // number of endpoints that the object would lose
	since     time.Time // zero if it is unknown
}

// plan compares the desired objects of one key with the existing ones. waits returns why an
// object may neither be deleted nor changed, because a change may remove endpoints. No
// object is deleted while another of the key may not change: moving endpoints would be in
// neither.
func plan(want []Object, have []Observed, waits func(Observed) wait) []Action {
	var held wait // why an object that should change is left
	there, wanted := make(map[Ref]int, len(have)), make([]bool, len(have))
	for i := range have {
		there[have[i].Ref] = i
	}
	all := sorted{leaves: make([]Action, 0, len(want))}
	for _, o := range want {
		at, ok := there[o.Ref()]
		if !ok {
			all.add(Action{Verb: Create, Ref: o.Ref(), Reason: "it is missing", want: o.whole()})
			continue
		}
		wanted[at] = true
		a := compare(o, have[at], waits)
		if a.wait.reason != "" {
			held = a.wait
		}
		all.add(a)
	}
	for i, is := range wanted {
		if !is {
			all.add(superfluous(have[i], held, waits))
		}
	}
	return all.actions()
}

// superfluous returns the action on an existing object that is not desired. held is why
// another object of the key may not change.
func superfluous(h Observed, held wait, waits func(Observed) wait) Action {
	a := Action{Verb: Delete, Ref: h.Ref, Reason: "nothing speaks of it any more", have: h}
	if a.wait = waits(h); a.wait.reason == "" && held.reason != "" {
		a.wait = wait{reason: held.reason, since: held.since} // the other object may have to take in this one's endpoints
	}
	if a.wait.reason != "" {
		a.Verb, a.Reason = Leave, a.wait.reason
	}
	return a
}

// sorted are actions by their verb. There may be thousands; most of them are Leave.
type sorted struct {
	creates, updates, deletes []Action
	definitions               []Action // deleted definitions: last, since they count while other objects exist
	leaves                    []Action
}

func (s *sorted) add(a Action) {
	to := &s.leaves
	switch a.Verb {
	case Create:
		to = &s.creates
	case Update:
		to = &s.updates
	case Delete:
		if to = &s.deletes; a.have.isDefinition() {
			to = &s.definitions
		}
	case Leave:
	}
	*to = append(*to, a)
}

func (s *sorted) actions() []Action {
	return slices.Concat(s.creates, s.updates, s.deletes, s.definitions, s.leaves)
}

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
