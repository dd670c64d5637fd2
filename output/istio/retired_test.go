package istio

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

const sidecars = "networking.istio.io/v1/namespaces/shop/sidecars/"

// withScope is a registry with a service and a scope, and an API server in which
// both were written, and beside them a Sidecar of somebody else.
func withScope(t *testing.T) (*kubeapi.Server, *registry) {
	t.Helper()
	api, r := newAPI(t), newRegistry("sc")
	api.Put(sidecars+"theirs", kubeapi.Object{
		"apiVersion": "networking.istio.io/v1", "kind": "Sidecar", "metadata": kubeapi.Object{"name": "theirs", "namespace": "shop"},
	})
	r.say(shop.Service("sc", "a.example"), shop.Instance("sc", "a.example", "10.0.0.1"), model.Upsert{Record: model.Record{
		Ref:  model.Ref{Kind: model.KindScope, Key: model.Key{Source: "sc", Namespace: "shop", Name: "cart"}},
		Spec: model.Scope{WorkloadSelector: model.MapOf(map[string]string{"app": "cart"}), Hosts: model.ListOf("./*")},
	}})
	r.listed("sc")
	w := start(t, api, r, func(c *Config, _ *Options) { c.Sidecars = true })
	wants(t, api, "a.example", "10.0.0.1")
	await(t, "the scope to be written", func() error {
		if api.Get(sidecars+"cart") == nil {
			return errors.New("it is not there")
		}
		return nil
	})
	settled(t, w)
	w.stop()
	return api, r
}

// Sidecars that are not written any more go, even while the source that they were
// of has not been listed: an operator said so. Those of others stay.
func TestTurningSidecarsOffRemovesThem(t *testing.T) {
	t.Parallel()
	api, _ := withScope(t)
	before := len(api.Writes())
	unlisted := newRegistry("sc")
	w := start(t, api, unlisted, func(_ *Config, o *Options) { o.Sources = unlisted.sources })
	await(t, "the Sidecar to go", func() error {
		if api.Get(sidecars+"cart") != nil {
			return errors.New("it is there")
		}
		return nil
	})
	sees(t, w, 1)
	want := []string{"DELETE " + sidecars + "cart"}
	if got := api.Writes()[before:]; !slices.Equal(got, want) {
		t.Errorf("it wrote %v", got)
	}
	if api.Get(sidecars+"theirs") == nil {
		t.Error("a Sidecar of somebody else was deleted")
	}
}

// A dry run says that they would go, and why.
func TestPlanSaysThatSidecarsGo(t *testing.T) {
	t.Parallel()
	api, r := withScope(t)
	w, err := newWriter(quick(), Options{Instance: "test"}, &rest.Config{Host: api.URL()})
	if err != nil {
		t.Fatal(err)
	}
	w.Publish(r.builder.Snapshot(), catalog.Change{}, true)
	actions, _, err := w.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range actions {
		got = append(got, fmt.Sprint(a.Verb, " ", a.Ref, ": ", a.Reason))
	}
	want := []string{"leave ServiceEntry shop/a.example: it is up to date", "delete Sidecar shop/cart: outputs.istio.sidecars is off"}
	if !slices.Equal(got, want) {
		t.Errorf("the plan is %q", got)
	}
}

// Who may not look for Sidecars, or has none defined, writes all the same.
func TestSidecarsThatCannotBeListedHoldUpNothing(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusForbidden, http.StatusNotFound} {
		api, r := newAPI(t), newRegistry("sc")
		api.Reject(func(_, path string) *kubeapi.Rejection {
			if !strings.HasSuffix(path, "/sidecars") {
				return nil
			}
			return &kubeapi.Rejection{Code: code, Reason: strings.ReplaceAll(http.StatusText(code), " ", ""), Message: "no sidecars"}
		})
		r.say(shop.Service("sc", "a.example"), shop.Instance("sc", "a.example", "10.0.0.1"))
		r.listed("sc")
		w := start(t, api, r, nil)
		wants(t, api, "a.example", "10.0.0.1")
		settled(t, w)
		if s := w.Status(); s.Trouble != "" {
			t.Errorf("%d: %s", code, s.Trouble)
		}
		w.stop()
		planner, err := newWriter(quick(), Options{Instance: "test"}, &rest.Config{Host: api.URL()})
		if err != nil {
			t.Fatal(err)
		}
		planner.Publish(r.builder.Snapshot(), catalog.Change{}, true)
		if actions, _, err := planner.Plan(t.Context()); err != nil || len(actions) != 1 {
			t.Errorf("%d: the plan is %v (%v)", code, actions, err)
		}
	}
}
