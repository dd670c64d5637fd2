package istio

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// Defect N: one bad endpoint had the whole service rejected, for ever and in silence.
func TestDefectNBadEndpointIsLeftOutAlone(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	r.say(shop.Service("sc", "a.example"), shop.Instance("sc", "a.example", "10.0.0.1"), shop.Instance("sc", "a.example", "node-1"),
		shop.InstanceOf("sc", "a.example", model.Endpoint{Address: "10.0.0.3", Labels: model.MapOf(map[string]string{"name": strings.Repeat("x", 64) + "!"})}))
	r.listed("sc")
	w := start(t, api, r, nil)
	wants(t, api, "a.example", "10.0.0.1 10.0.0.3")
	settled(t, w)
	left := fmt.Sprint(w.Status().LeftOut[0].LeftOut)
	if !strings.Contains(left, "its address is a name") || !strings.Contains(left, "written without labels") {
		t.Errorf("left out: %s", left)
	}
}

// An object that is rejected is rejected alone, shown with the reason, and
// written once it is not rejected any more.
func TestDefectNRejectedObjectHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	api.Reject(func(verb, path string) *kubeapi.Rejection {
		if verb == "PATCH" && strings.HasSuffix(path, "/bad.example") {
			return &kubeapi.Rejection{Code: http.StatusBadRequest, Reason: "BadRequest", Message: `admission webhook "rules" denied the request: no`}
		}
		return nil
	})
	for _, host := range []string{"bad.example", "a.example", "z.example"} {
		r.say(shop.Service("sc", host), shop.Instance("sc", host, "10.0.0.1"))
	}
	r.listed("sc")
	w := start(t, api, r, nil)
	wants(t, api, "a.example", "10.0.0.1")
	wants(t, api, "z.example", "10.0.0.1")
	fails(t, w, "ServiceEntry shop/bad.example", `rejected by the admission webhook "rules" denied the request: no`)
	api.Reject(nil)
	wants(t, api, "bad.example", "10.0.0.1")
	settled(t, w)
}

// An overloaded API server says when to come again, and is obeyed.
func TestDefectNOverloadIsWaitedFor(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	api.Reject(func(verb, path string) *kubeapi.Rejection {
		if verb == "PATCH" && strings.HasSuffix(path, "/a.example") {
			return &kubeapi.Rejection{Code: http.StatusTooManyRequests, Reason: "TooManyRequests", Message: "later", RetryAfter: 3600}
		}
		return nil
	})
	for _, host := range []string{"a.example", "b.example"} {
		r.say(shop.Service("sc", host), shop.Instance("sc", host, "10.0.0.1"))
	}
	r.listed("sc")
	w := start(t, api, r, nil)
	wants(t, api, "b.example", "10.0.0.1")
	fails(t, w, "ServiceEntry shop/a.example", "overloaded")
	r.say(shop.Instance("sc", "a.example", "10.0.0.2")) // no reason to come earlier
	f := w.Status().Failing[0]
	if wait := f.Next.Sub(f.Since); wait.Minutes() < 59 || f.Tries != 1 {
		t.Errorf("tried again after %s, for the %d. time", wait, f.Tries)
	}
}

// An API server that is away for a while finds everything done when it is back.
func TestDefectNOutageIsCaughtUpWith(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	r.say(shop.Service("sc", "a.example"), shop.Instance("sc", "a.example", "10.0.0.1"), shop.Service("sc", "b.example"))
	r.listed("sc")
	w := start(t, api, r, nil)
	wants(t, api, "a.example", "10.0.0.1")
	settled(t, w)
	await(t, "b.example to be seen", func() error { // else there is nothing to delete while the API server is away
		if _, ok := w.view.Object(object.Ref{Kind: object.ServiceEntry, Namespace: "shop", Name: "b.example"}); !ok {
			return errors.New("it is not")
		}
		return nil
	})
	api.Down(true)
	r.say(shop.Instance("sc", "a.example", "10.0.0.2"), shop.NoService("sc", "b.example"))
	await(t, "the trouble to show", func() error {
		if s := w.Status(); s.Trouble == "" || len(s.Failing) != 2 {
			return fmt.Errorf("trouble %q, failing %v", s.Trouble, s.Failing)
		}
		return nil
	})
	api.Down(false)
	wants(t, api, "a.example", "10.0.0.1 10.0.0.2")
	wants(t, api, "b.example", "no object")
	await(t, "the trouble to end", func() error {
		if s := w.Status(); s.Trouble != "" || len(s.Failing) > 0 {
			return fmt.Errorf("trouble %q, failing %v", s.Trouble, s.Failing)
		}
		return nil
	})
}
