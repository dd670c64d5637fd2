package istio

import (
	"errors"
	"fmt"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// An object that is not made anew, since nothing about it has changed, is made
// after all when somebody has changed what was written.
func TestDriftOfALargeServiceIsRestored(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	r.say(shop.Service("sc", "a.example"))
	for i := range 200 {
		r.say(shop.InstanceOf("sc", "a.example", shop.Busy(i, "v1")))
	}
	r.listed("sc")
	w := start(t, api, r, nil)
	settled(t, w)
	for path, o := range api.Everything() {
		before := addressesIn(o)
		spec, _ := o["spec"].(kubeapi.Object)
		spec["endpoints"] = []any{kubeapi.Object{"address": "192.0.2.1"}}
		api.Put(path, o)
		await(t, path+" to be restored", func() error {
			if after := addressesIn(api.Get(path)); after != before {
				return errors.New(after)
			}
			return nil
		})
	}
	await(t, "the drift to be counted", func() error {
		if got := w.Status().Drift; got != 2 {
			return fmt.Errorf("drift %d, want one of each object", got)
		}
		return nil
	})
}
