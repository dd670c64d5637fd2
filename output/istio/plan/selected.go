package plan

import (
	"time"

	"github.com/isthmus-mesh/isthmus/output/istio/object"
)

// Selecting is a ServiceEntry of any owner, with its selector.
type Selecting struct {
	Ref      object.Ref
	Selector map[string]string
}

// Selectable returns the deleted WorkloadEntries among actions that were handed over, and
// that a ServiceEntry of another owner may therefore select.
func Selectable(actions []Action) (found []*Action) {
	for i := range actions {
		if a := &actions[i]; a.Verb == Delete && a.Kind == object.WorkloadEntry && a.Have.Selectable != nil {
			found = append(found, a)
		}
	}
	return found
}

// KeepSelected leaves handed-over WorkloadEntries without a service while a ServiceEntry
// selects them, and a while longer. That ServiceEntry may belong to another owner, or may
// be handed over but not rewritten yet. unknown is why the ServiceEntries are unknown; empty
// if they are known. It changes the actions, and returns when to plan again; zero if there
// is no need.
func (p *Planner) KeepSelected(key object.Key, handedOver []*Action, all []Selecting, unknown string) (after time.Duration) {
	lasts := object.Key{Kind: object.WorkloadEntry, Namespace: key.Namespace, Name: key.Name} // distinct from the key of a service's stage
	if len(handedOver) == 0 {
		p.waits.Forget(lasts)
		return 0
	}
	kept := false
	for _, a := range handedOver {
		reason := unknown
		if reason == "" {
			reason = whySelected(a.Have, all)
		}
		if reason != "" {
			a.Verb, a.Reason, a.Wait, kept = Leave, reason, Wait{Reason: reason}, true
		}
	}
	if kept || p.waits.Final {
		p.waits.Forget(lasts)
		return p.waits.Long
	}
	if after = p.waits.Remains(lasts, false, time.Now()); after > 0 {
		for _, a := range handedOver {
			a.Verb, a.Reason = Leave, "nothing selects it any more; it is deleted once every istiod has seen that"
			a.Wait = Wait{Reason: a.Reason}
		}
	}
	return after
}

// whySelected returns why an object may not be deleted; empty if it may.
func whySelected(o object.Observed, all []Selecting) string {
	for _, s := range all {
		if object.Includes(o.Selectable, s.Selector) {
			return s.Ref.String() + " selects it; it is deleted once that is handed over too, or deleted"
		}
	}
	return ""
}
