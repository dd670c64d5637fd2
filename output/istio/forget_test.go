package istio

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// What somebody else deleted before it was no longer wanted is not remembered:
// names come and go for as long as a replica leads.
func TestWhatIsGoneIsForgotten(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	r.listed("sc")
	w := start(t, api, r, nil)
	for i := range 2 {
		host := "a" + strconv.Itoa(i) + ".example"
		r.say(shop.Service("sc", host), shop.Instance("sc", host, "10.0.0.1"))
		wants(t, api, host, "10.0.0.1")
		sees(t, w, 1)
		api.Delete(entries + host) // which is restored
		wants(t, api, host, "10.0.0.1")
		sees(t, w, 1)
		api.Reject(func(verb, _ string) *kubeapi.Rejection { // as if the namespace went with its objects
			if verb != http.MethodPatch {
				return nil
			}
			return &kubeapi.Rejection{Code: http.StatusForbidden, Reason: "Forbidden", Message: "the namespace goes"}
		})
		api.Delete(entries + host)
		fails(t, w, "ServiceEntry shop/"+host, "the namespace goes")
		r.say(shop.NoService("sc", host), shop.NoInstance("sc", host, "10.0.0.1"))
		sees(t, w, 0)
		api.Reject(nil)
	}
	await(t, "everything to be forgotten", func() error {
		if n, _ := w.written.Size(); n > 0 {
			return fmt.Errorf("%d entries are left", n)
		}
		return nil
	})
}

// sees waits until the writer knows of so many objects, and is at rest.
func sees(t *testing.T, w *running, objects int) {
	t.Helper()
	await(t, "the view", func() error {
		if s := w.Status(); s.Objects != objects || s.Pending > 0 {
			return fmt.Errorf("%d objects, %d pending", s.Objects, s.Pending)
		}
		return nil
	})
}
