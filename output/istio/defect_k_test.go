package istio

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/write"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// Defect K: two bridges deleted what the other had made. Two instances leave
// each other's objects alone, and what is in the way is shown with a remedy.
func TestDefectKInstancesKeepApart(t *testing.T) {
	t.Parallel()
	api, east, west := newAPI(t), newRegistry("sc"), newRegistry("sc")
	east.say(shop.Service("sc", "both.example"), shop.Instance("sc", "both.example", "10.0.0.1"))
	west.say(shop.Service("sc", "both.example"), shop.Instance("sc", "both.example", "10.9.9.9"),
		shop.Service("sc", "west.example"), shop.Instance("sc", "west.example", "10.9.9.1"))
	east.listed("sc")
	west.listed("sc")
	named := func(name string) func(*Config, *Options) {
		return func(_ *Config, o *Options) { o.Instance = name }
	}
	e := start(t, api, east, named("east"))
	wants(t, api, "both.example", "10.0.0.1")
	settled(t, e)
	w := start(t, api, west, named("west"))
	wants(t, api, "west.example", "10.9.9.1")
	fails(t, w, "ServiceEntry shop/both.example", "belongs to the Isthmus instance east", "delete or rename it", object.LabelInstance)
	if got := addresses(api, "both.example"); got != "10.0.0.1" {
		t.Errorf("written: %s", got)
	}

	east.say(shop.NoService("sc", "both.example"), shop.NoInstance("sc", "both.example", "10.0.0.1")) // east hands it over
	wants(t, api, "both.example", "10.9.9.9")
	if got := addresses(api, "west.example"); got != "10.9.9.1" {
		t.Errorf("written: %s", got)
	}
}

// What users have made is never touched, whatever it is named.
func TestDefectKUsersObjectsAreLeftAlone(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	mine := kubeapi.Object{
		"apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry",
		"metadata": kubeapi.Object{"name": "a.example", "namespace": "shop", "labels": kubeapi.Object{object.LabelManagedBy: object.ManagedBy}},
		"spec":     kubeapi.Object{"hosts": []any{"a.example"}, "endpoints": []any{kubeapi.Object{"address": "1.1.1.1"}}},
	}
	api.Put(entries+"a.example", mine)
	r.say(shop.Service("sc", "a.example"), shop.Instance("sc", "a.example", "10.0.0.1"))
	r.listed("sc")
	w := start(t, api, r, nil)
	fails(t, w, "ServiceEntry shop/a.example", "it lacks the labels of this Isthmus", "setting both labels")
	r.say(shop.NoService("sc", "a.example"), shop.NoInstance("sc", "a.example", "10.0.0.1"))
	settled(t, w)
	if writes := api.Writes(); len(writes) > 0 || addresses(api, "a.example") != "1.1.1.1" {
		t.Errorf("writes: %v", strings.Join(writes, ", "))
	}
}

// Somebody who changes an object whenever it is restored is not fought without
// end, but shown.
func TestDefectKConflictingWriterIsNotFought(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // five restorations within 30 s are a conflict
		api, r := piped(t), newRegistry("sc")
		r.say(shop.Service("sc", "a.example"), shop.Instance("sc", "a.example", "10.0.0.1"), shop.Service("sc", "b.example"))
		r.listed("sc")
		w := startAt(t, api.Config(), r, nil)
		wants(t, api.Server, "a.example", "10.0.0.1")
		settled(t, w)
		for range write.ConflictAfter {
			api.Delete(entries + "a.example")
			wants(t, api.Server, "a.example", "10.0.0.1")
			settled(t, w)
		}
		api.Delete(entries + "a.example")
		fails(t, w, "ServiceEntry shop/a.example", "another writer keeps changing it", "managedFields")
		if got := addresses(api.Server, "a.example"); got != "no object" {
			t.Errorf("it was restored once more: %s", got)
		}
		r.say(shop.Instance("sc", "b.example", "10.0.0.2"))
		wants(t, api.Server, "b.example", "10.0.0.2")
	})
}
