package plan

import (
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/output/istio/object"
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
	object.Ref
	Reason string
	// Diff is the change of the specification: lines that begin with a minus are removed,
	// lines that begin with a plus added. Only package dryrun sets it.
	Diff []string
	// HandOver is the action on an object of the earlier bridge if it had our labels: Update
	// or Delete. Without them the object is left alone. Only package dryrun sets it.
	HandOver Verb

	Want object.Object   // unless the verb is Delete
	Have object.Observed // unless the verb is Create
	Wait Wait            // why the object is left unchanged, if it differs from the desired one
}

// Key returns the key that the action belongs to.
func (a Action) Key() object.Key {
	switch {
	case a.Kind == object.Sidecar:
		return object.Key(a.Ref)
	case a.Verb == Delete:
		return a.Have.About()
	}
	key := object.Key{Kind: object.ServiceEntry, Namespace: a.Namespace, Name: a.Want.Annotations[object.AnnotationService]}
	if a.Kind == object.DestinationRule {
		key.Kind = object.DestinationRule
	}
	return key
}

// Wait is why an object that should change or be deleted is left; the reason is empty if
// the action may proceed.
type Wait struct {
	Reason    string
	Endpoints int       // number of endpoints that the object would lose
	Since     time.Time // zero if it is unknown
}

// Compare compares the desired objects of one key with the existing ones. waits returns why an
// object may neither be deleted nor changed, because a change may remove endpoints. No
// object is deleted while another of the key may not change: moving endpoints would be in
// neither.
func Compare(want []object.Object, have []object.Observed, waits func(object.Observed) Wait) []Action {
	var held Wait // why an object that should change is left
	there, wanted := make(map[object.Ref]int, len(have)), make([]bool, len(have))
	for i := range have {
		there[have[i].Ref] = i
	}
	all := sorted{leaves: make([]Action, 0, len(want))}
	for _, o := range want {
		at, ok := there[o.Ref()]
		if !ok {
			all.add(Action{Verb: Create, Ref: o.Ref(), Reason: "it is missing", Want: o.Whole()})
			continue
		}
		wanted[at] = true
		a := compare(o, have[at], waits)
		if a.Wait.Reason != "" {
			held = a.Wait
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
func superfluous(h object.Observed, held Wait, waits func(object.Observed) Wait) Action {
	a := Action{Verb: Delete, Ref: h.Ref, Reason: "no record needs it any more", Have: h}
	if a.Wait = waits(h); a.Wait.Reason == "" && held.Reason != "" {
		a.Wait = Wait{Reason: held.Reason, Since: held.Since} // the other object may have to take in this one's endpoints
	}
	if a.Wait.Reason != "" {
		a.Verb, a.Reason = Leave, a.Wait.Reason
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
		if to = &s.deletes; a.Have.IsDefinition() {
			to = &s.definitions
		}
	case Leave:
	}
	*to = append(*to, a)
}

func (s *sorted) actions() []Action {
	return slices.Concat(s.creates, s.updates, s.deletes, s.definitions, s.leaves)
}

func compare(o object.Object, h object.Observed, waits func(object.Observed) Wait) Action {
	a := Action{Verb: Leave, Ref: o.Ref(), Reason: "it is up to date", Want: o, Have: h}
	field := o.Differs(h)
	if field == "" {
		return a
	}
	a.Want = o.Whole()
	if a.Wait = waits(h); a.Wait.Reason != "" {
		a.Reason = a.Wait.Reason
		return a
	}
	a.Verb, a.Reason = Update, field+" differs"
	return a
}

// NamespacesOf returns the namespaces of actions, each once, in order.
func NamespacesOf(actions []Action) (list []string) {
	for _, a := range actions {
		list = append(list, a.Namespace)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
