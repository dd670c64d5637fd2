package istio

import (
	"net/http"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// A namespace that is being deleted takes no objects. That is forbidden, as the
// API server puts it, but no rights would help.
func TestNamespaceThatGoesIsNoMatterOfRights(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	api.Reject(func(verb, _ string) *kubeapi.Rejection {
		if verb == http.MethodPatch {
			return &kubeapi.Rejection{
				Code: http.StatusForbidden, Reason: "Forbidden", Cause: "NamespaceTerminating",
				Message: "unable to create new content in namespace shop because it is being terminated",
			}
		}
		return nil
	})
	r.say(shop.Service("sc", "a.example"), shop.Instance("sc", "a.example", "10.0.0.1"))
	r.listed("sc")
	w := start(t, api, r, nil)
	fails(t, w, "ServiceEntry shop/a.example", "being terminated: create the namespace again once it is deleted")
	api.Reject(nil)
	wants(t, api, "a.example", "10.0.0.1")
}
