package istio

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/istio/plan"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

func TestPlanSaysWhatWouldBeWrittenAndWritesNothing(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	for _, host := range []string{"same.example", "changed.example", "gone.example"} {
		r.say(shop.Service("sc", host), shop.Instance("sc", host, "10.0.0.1"))
	}
	r.listed("sc")
	w := start(t, api, r, nil)
	settled(t, w)
	w.stop()
	before := api.Writes()
	api.Put(entries+"theirs.example", kubeapi.Object{
		"apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry", "metadata": kubeapi.Object{"name": "theirs.example", "namespace": "shop"},
	})
	r.say(shop.NoService("sc", "gone.example"), shop.NoInstance("sc", "gone.example", "10.0.0.1"), shop.Instance("sc", "changed.example", "10.0.0.2"),
		shop.NoInstance("sc", "changed.example", "10.0.0.1"), shop.Service("sc", "new.example"), shop.Service("sc", "theirs.example"), shop.Instance("sc", "new.example", "name"))

	c := quick()
	c.LeaderElection.Enabled = true // which it does not stand for
	rehearsal, err := newWriter(c, Options{Instance: "test"}, &rest.Config{Host: api.URL()})
	if err != nil {
		t.Fatal(err)
	}
	rehearsal.Publish(r.builder.Snapshot(), catalog.Change{}, true)
	actions, left, err := rehearsal.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range actions {
		reason, _, _ := strings.Cut(a.Reason, ",")
		got = append(got, fmt.Sprint(a.Verb, " ", a.Ref, ": ", reason))
		if a.Verb == plan.Update {
			got = append(got, a.Diff...)
		}
	}
	want := []string{
		"update ServiceEntry shop/changed.example: spec differs",
		`- endpoints: {"address":"10.0.0.1"}`,
		`+ endpoints: {"address":"10.0.0.2"}`,
		"delete ServiceEntry shop/gone.example: no record needs it any more",
		"create ServiceEntry shop/new.example: it is missing",
		"leave ServiceEntry shop/same.example: it is up to date",
		"leave ServiceEntry shop/theirs.example: ServiceEntry shop/theirs.example exists",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	if len(left) != 1 || left[0].Name != "new.example" || left[0].LeftOut[0].Count != 1 {
		t.Errorf("left out: %+v", left)
	}
	if after := api.Writes(); !slices.Equal(before, after) {
		t.Errorf("it wrote: %v", after[len(before):])
	}
}

func TestPlanSaysWhyTheServerCannotBeListed(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry()
	api.Down(true)
	w, err := newWriter(quick(), Options{Instance: "test"}, &rest.Config{Host: api.URL()})
	if err != nil {
		t.Fatal(err)
	}
	w.Publish(r.builder.Snapshot(), catalog.Change{}, true)
	if _, _, err := w.Plan(t.Context()); err == nil || !strings.Contains(err.Error(), "the API server cannot be listed") {
		t.Errorf("error: %v", err)
	}
}
