package istio

import (
	"fmt"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/translate"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
)

// selectedBefore has somebody else have written a.example with n endpoints that are
// objects of their own, as a service of n endpoints that is registered, too.
func selectedBefore(n int) (*kubeapi.Server, *registry) {
	api, r := kubeapi.New(), newRegistry("sc")
	object := func(kind, name string, spec kubeapi.Object) kubeapi.Object {
		return kubeapi.Object{
			"apiVersion": "networking.istio.io/v1", "kind": kind, "spec": spec,
			"metadata": kubeapi.Object{"name": name, "namespace": "shop", "labels": kubeapi.Object{}},
		}
	}
	api.Put(entries+"a.example", object("ServiceEntry", "a.example", kubeapi.Object{
		"hosts": []any{"a.example"}, "location": "MESH_INTERNAL", "resolution": "STATIC",
		"ports":            []any{kubeapi.Object{"number": int64(80), "name": "HTTP-80", "protocol": "HTTP"}},
		"workloadSelector": kubeapi.Object{"labels": kubeapi.Object{"service": "a"}},
	}))
	for i := range n {
		name := fmt.Sprintf("a-%d", i)
		workload := object("WorkloadEntry", name, kubeapi.Object{
			"address": fmt.Sprintf("10.0.0.%d", i), "labels": kubeapi.Object{"serviceCenterInstanceId": name},
		})
		labelsOf(workload)["service"] = "a"
		api.Put(workloads+name, workload)
	}
	r.say(fleetSays(n)...)
	r.listed("sc")
	return api, r
}

// giveAway sets both labels.
func giveAway(api *kubeapi.Server, path string) {
	o := api.Get(path)
	labelsOf(o)[object.LabelManagedBy], labelsOf(o)[object.LabelInstance] = object.ManagedBy, "test"
	api.Put(path, o)
}

// Whoever had endpoints as objects of their own hands them over in any order: none is
// absent for a moment, and in the end there are those of the form alone.
func TestWorkloadsOfOthersAreTakenOver(t *testing.T) {
	t.Parallel()
	const n = 5
	for _, form := range []translate.Form{translate.Inline, translate.WorkloadEntries} {
		for _, first := range []string{"ServiceEntry", "WorkloadEntry"} {
			t.Run(string(form)+", the "+first+" first", func(t *testing.T) {
				t.Parallel()
				api, r := selectedBefore(n)
				t.Cleanup(api.Close)
				w := start(t, api, r, func(c *Config, o *Options) {
					inForm(form)(c, o)
					c.ShardSize = 100
				})
				fails(t, w, "ServiceEntry shop/a.example", "hand it over")
				moves := filmed(api)
				if first == "ServiceEntry" {
					giveAway(api, entries+"a.example")
				}
				for i := range n {
					giveAway(api, workloads+fmt.Sprintf("a-%d", i))
				}
				if first == "WorkloadEntry" {
					await(t, "what has to wait to be shown", func() error {
						held := w.Status().Held
						if len(held) != n || !strings.Contains(held[0].Reason, "ServiceEntry shop/a.example selects it") {
							return fmt.Errorf("held are %v", held)
						}
						return nil
					})
					giveAway(api, entries+"a.example")
				}
				endsIn(t, api, w, form, n)
				for _, m := range moves.take() {
					if len(m.served) != n {
						t.Errorf("served were %v", m.served)
					}
				}
			})
		}
	}
}
