package istio

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// Defect B: a restart lost the truth. Instances that died meanwhile stayed for
// ever, new ones were missing, and services that were gone were never removed.
func TestDefectBRestartTakesOverWhatIsThere(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	r.say(shop.Service("sc", "a.example"), shop.Instance("sc", "a.example", "10.0.0.1"), shop.Instance("sc", "a.example", "10.0.0.2"),
		shop.Service("sc", "gone.example"), shop.Instance("sc", "gone.example", "10.0.0.9"),
		shop.Service("sc", "same.example"), shop.Instance("sc", "same.example", "10.0.0.5"))
	r.listed("sc")
	first := start(t, api, r, nil)
	wants(t, api, "a.example", "10.0.0.1 10.0.0.2")
	wants(t, api, "gone.example", "10.0.0.9")
	settled(t, first)
	first.stop()

	r.say(shop.NoInstance("sc", "a.example", "10.0.0.1"), shop.Instance("sc", "a.example", "10.0.0.3"),
		shop.NoService("sc", "gone.example"), shop.NoInstance("sc", "gone.example", "10.0.0.9"))
	before := len(api.Writes())
	second := start(t, api, r, nil)
	wants(t, api, "a.example", "10.0.0.2 10.0.0.3")
	wants(t, api, "gone.example", "no object")
	settled(t, second)
	if wrote := api.Writes()[before:]; len(wrote) != 2 {
		t.Errorf("wrote %v, where one update and one delete were needed", wrote)
	}
}

// Law 3 beside it: what a source has said before is not taken away while the
// source has not been listed since the start; not even in part.
func TestDefectBNothingGoesBeforeItsSourceIsListed(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc", "files")
	r.say(shop.Service("sc", "old.example"), shop.Instance("sc", "old.example", "10.0.0.1"),
		shop.Service("sc", "both.example"), shop.Service("files", "both.example"),
		shop.Instance("sc", "both.example", "10.0.0.1"), shop.Instance("files", "both.example", "10.0.0.2"),
		shop.Service("files", "mine.example"), shop.Instance("files", "mine.example", "10.0.0.7"))
	r.listed("sc", "files")
	first := start(t, api, r, nil)
	wants(t, api, "both.example", "10.0.0.1 10.0.0.2")
	wants(t, api, "old.example", "10.0.0.1")
	settled(t, first)
	first.stop()

	again := newRegistry("sc", "files") // nothing survived, and sc does not answer
	again.say(shop.Service("files", "both.example"), shop.Instance("files", "both.example", "10.0.0.2"))
	again.listed("files")
	second := start(t, api, again, nil)
	wants(t, api, "mine.example", "no object") // files has been listed without it
	settled(t, second)
	if got := addresses(api, "both.example") + ", " + addresses(api, "old.example"); got != "10.0.0.1 10.0.0.2, 10.0.0.1" {
		t.Errorf("written: %s", got)
	}
	if held := second.Status().Held; len(held) != 2 {
		t.Errorf("held: %v, want both objects that wait for sc", held)
	}
	again.listed("sc")
	wants(t, api, "both.example", "10.0.0.2")
	wants(t, api, "old.example", "no object")
	settled(t, second)
	if held := second.Status().Held; len(held) != 0 {
		t.Errorf("held: %v", held)
	}
}

// An endpoint may come from another source than the service it belongs to: it
// stays until that source has been listed.
func TestDefectBSelectedWorkloadsStayUntilTheirSourceIsListed(t *testing.T) {
	t.Parallel()
	selecting := func() model.Event {
		up, _ := shop.Service("files", "a.example").(model.Upsert)
		s, _ := up.Record.Spec.(model.Service)
		s.WorkloadSelector = model.MapOf(map[string]string{"app": "a"})
		up.Record.Spec = s
		return up
	}
	workload := func(source, name, address string) model.Event {
		return model.Upsert{Record: model.Record{
			Ref:  model.Ref{Kind: model.KindWorkload, Key: model.Key{Source: source, Namespace: "shop", Name: name}},
			Spec: model.Workload{Endpoint: model.Endpoint{Address: address, Labels: model.MapOf(map[string]string{"app": "a"})}},
		}}
	}
	api, r := newAPI(t), newRegistry("files", "vms")
	r.say(selecting(), workload("files", "one", "10.0.0.1"), workload("vms", "two", "10.0.0.2"))
	r.listed("files", "vms")
	first := start(t, api, r, nil)
	wants(t, api, "a.example", "10.0.0.1 10.0.0.2")
	settled(t, first)
	first.stop()

	again := newRegistry("files", "vms")
	again.say(selecting(), workload("files", "one", "10.0.0.1"))
	again.listed("files")
	second := start(t, api, again, nil)
	settled(t, second)
	if got := addresses(api, "a.example"); got != "10.0.0.1 10.0.0.2" || len(second.Status().Held) != 1 {
		t.Errorf("written: %s; held: %v", got, second.Status().Held)
	}
	again.listed("vms")
	wants(t, api, "a.example", "10.0.0.1")
}
