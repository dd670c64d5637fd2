package istio

import (
	"slices"
	"time"
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
	var held wait // why an object that should change stays as it is
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

// superfluous is what is done to an object that there should not be, while another of
// the key is held.
func superfluous(h Observed, held wait, waits func(Observed) wait) Action {
	a := Action{Verb: Delete, Ref: h.Ref, Reason: "nothing speaks of it any more", have: h}
	if a.wait = waits(h); a.wait.reason == "" && held.reason != "" {
		a.wait = wait{reason: held.reason, since: held.since} // the other may have to take in what is in this one
	}
	if a.wait.reason != "" {
		a.Verb, a.Reason = Leave, a.wait.reason
	}
	return a
}

// sorted are actions by what is done. There may be thousands, most of which are none.
type sorted struct {
	creates, updates, deletes []Action
	definitions               []Action // that are deleted: while others are there they count
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
