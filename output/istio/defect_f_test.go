package istio

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// Defect F: a conflict was for ever, so that a label set by hand ended all
// updates of a service, and what was deleted by hand was never restored.
func TestDefectFHandsAreNoHarm(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	r.say(shop.Service("sc", "a.example"), shop.Instance("sc", "a.example", "10.0.0.1"))
	r.listed("sc")
	w := start(t, api, r, nil)
	wants(t, api, "a.example", "10.0.0.1")
	settled(t, w)

	o := api.Get(entries + "a.example")
	labels, _ := o["metadata"].(kubeapi.Object)["labels"].(kubeapi.Object)
	labels["team"] = "mine"
	api.Put(entries+"a.example", o)
	r.say(shop.Instance("sc", "a.example", "10.0.0.2"))
	wants(t, api, "a.example", "10.0.0.1 10.0.0.2")
	labels, _ = api.Get(entries + "a.example")["metadata"].(kubeapi.Object)["labels"].(kubeapi.Object)
	if labels["team"] != "mine" {
		t.Error("a label that is not ours was taken away")
	}

	settled(t, w)
	api.Delete(entries + "a.example")
	wants(t, api, "a.example", "10.0.0.1 10.0.0.2")
	settled(t, w)
	o = api.Get(entries + "a.example")
	spec, _ := o["spec"].(kubeapi.Object)
	spec["endpoints"], spec["exportTo"] = []any{kubeapi.Object{"address": "6.6.6.6"}}, []any{"~"}
	api.Put(entries+"a.example", o)
	wants(t, api, "a.example", "10.0.0.1 10.0.0.2")
	await(t, "what was added to go, and all to be counted", func() error {
		spec, _ := api.Get(entries + "a.example")["spec"].(kubeapi.Object)
		if drift := w.Status().Drift; spec["exportTo"] != nil || drift != 2 {
			return fmt.Errorf("exportTo %v, drift %d", spec["exportTo"], drift)
		}
		return nil
	})
}

// A write between our look and our write is a conflict, which is looked at again.
func TestDefectFConflictIsTriedAgain(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	r.say(shop.Service("sc", "a.example"), shop.Instance("sc", "a.example", "10.0.0.1"))
	r.listed("sc")
	w := start(t, api, r, nil)
	wants(t, api, "a.example", "10.0.0.1")
	settled(t, w)
	var raced atomic.Int32
	api.Before(func(verb, _ string) {
		if verb == "PATCH" && raced.Add(1) <= 2 {
			o := api.Get(entries + "a.example")
			o["status"] = kubeapi.Object{"seen": raced.Load()}
			api.Put(entries+"a.example", o)
		}
	})
	r.say(shop.Instance("sc", "a.example", "10.0.0.2"))
	wants(t, api, "a.example", "10.0.0.1 10.0.0.2")
	settled(t, w)
	if s := w.Status(); s.Failures == 0 || len(s.Failing) > 0 {
		t.Errorf("%d failures, failing %v", s.Failures, s.Failing)
	}
}
