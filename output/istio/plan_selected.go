package istio

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// selecting is a ServiceEntry of any owner, with its selector.
type selecting struct {
	ref      Ref
	selector map[string]string
}

// keepSelected leaves handed-over WorkloadEntries without a service while a ServiceEntry
// selects them, and a while longer. That ServiceEntry may belong to another owner, or may
// be handed over but not rewritten yet. It changes the actions, and returns when to
// reconcile again; zero if there is no need.
func (w *Writer) keepSelected(ctx context.Context, key Key, actions []Action) (after time.Duration) {
	var handedOver []*Action
	for i := range actions {
		if a := &actions[i]; a.Verb == Delete && a.Kind == WorkloadEntry && a.have.labels != nil {
			handedOver = append(handedOver, a)
		}
	}
	lasts := Key{WorkloadEntry, key.Namespace, key.Name} // distinct from the key of a service's stage
	if len(handedOver) == 0 {
		w.settling.forget(lasts)
		return 0
	}
	all, err := w.selecting(ctx, key.Namespace)
	settle, kept := cmp.Or(w.options.settle, settleFor), false
	for _, a := range handedOver {
		if reason := whySelected(a.have, all, err); reason != "" {
			a.Verb, a.Reason, a.wait, kept = Leave, reason, wait{reason: reason}, true
		}
	}
	if kept || w.rehearses {
		w.settling.forget(lasts)
		return settle
	}
	if after = w.settling.remains(lasts, false, settle, time.Now()); after > 0 {
		for _, a := range handedOver {
			a.Verb, a.Reason = Leave, "nothing selects it any more; it goes when every istiod has seen that"
			a.wait = wait{reason: a.Reason}
		}
	}
	return after
}

// selecting reads the ServiceEntries of a namespace that have a selector.
func (w *Writer) selecting(ctx context.Context, namespace string) (all []selecting, err error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	err = w.remote.each(ctx, ServiceEntry, namespace, func(u *unstructured.Unstructured) {
		if selector, _, _ := unstructured.NestedStringMap(specOf(u), "workloadSelector", "labels"); len(selector) > 0 {
			all = append(all, selecting{Ref{ServiceEntry, namespace, u.GetName()}, selector})
		}
	})
	return all, err
}

// whySelected returns why an object may not be deleted; empty if it may.
func whySelected(o Observed, all []selecting, err error) string {
	if err != nil {
		return "it is not known whether a ServiceEntry selects it: " + explain(err)
	}
	for _, s := range all {
		if includes(o.labels, s.selector) {
			return s.ref.String() + " selects it; it goes when that is handed over too, or deleted"
		}
	}
	return ""
}
