package istio

import (
	"slices"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// handedOver is an object of somebody else that got our labels, as the rejection
// of an object in the way advises, and nothing more.
func handedOver(host string) kubeapi.Object {
	return kubeapi.Object{
		"apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry",
		"metadata": kubeapi.Object{
			"name": host, "namespace": "shop",
			"labels": kubeapi.Object{object.LabelManagedBy: object.ManagedBy, object.LabelInstance: "test"},
		},
		"spec": kubeapi.Object{"hosts": []any{host}, "endpoints": []any{kubeapi.Object{"address": "10.0.0.1"}}},
	}
}

// An object that is handed over by its labels is changed to what it should be.
// It is not deleted and made anew, in between of which nobody could be reached.
func TestWhatIsHandedOverIsNotDeleted(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	const host = "a.example"
	api.Put(entries+host, handedOver(host))
	r.say(shop.Service("sc", host), shop.Instance("sc", host, "10.0.0.2"))
	r.listed("sc")
	w := start(t, api, r, nil)
	wants(t, api, host, "10.0.0.2")
	settled(t, w)
	if writes := api.Writes(); slices.ContainsFunc(writes, func(s string) bool { return strings.HasPrefix(s, "DELETE") }) {
		t.Errorf("writes: %v", writes)
	}
}

// The same while it runs: the object was in the way, and is handed over; or it
// is our own, and somebody has removed its annotations.
func TestWhatLosesItsAnnotationsIsNotDeleted(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	const host = "a.example"
	r.say(shop.Service("sc", host), shop.Instance("sc", host, "10.0.0.2"))
	r.listed("sc")
	w := start(t, api, r, nil)
	wants(t, api, host, "10.0.0.2")
	settled(t, w)
	for range 4 {
		api.Put(entries+host, handedOver(host))
		wants(t, api, host, "10.0.0.2")
		settled(t, w)
	}
	if writes := api.Writes(); slices.ContainsFunc(writes, func(s string) bool { return strings.HasPrefix(s, "DELETE") }) {
		t.Errorf("writes: %v", writes)
	}
}

// An object of which nobody knows whose records it is made of goes only when
// every source has been listed.
func TestWhatIsOfNoKnownSourceWaitsForAll(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc", "files")
	api.Put(entries+"a.example", handedOver("a.example"))
	r.say(shop.Service("files", "marker.example"), shop.Instance("files", "marker.example", "10.0.0.7"))
	r.listed("files")
	w := start(t, api, r, func(_ *Config, o *Options) {
		o.Sources = r.sources
	})
	wants(t, api, "marker.example", "10.0.0.7")
	settled(t, w)
	if got := addresses(api, "a.example"); got != "10.0.0.1" {
		t.Fatalf("sc has not been listed, and written is: %s", got)
	}
	r.listed("sc")
	wants(t, api, "a.example", "no object")
}
