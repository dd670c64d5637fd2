package catalog_test

import (
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// A workload of a confined source is an endpoint of the hosts that its source may have, and
// of no other, whoever defines them, and whichever of the two changes last.
func TestConfinedWorkloadsServeTheirHostsOnly(t *testing.T) {
	t.Parallel()
	vm := func(only ...string) model.Record {
		return model.Record{Ref: ref(model.KindWorkload, "confined", "vm"), Revision: 1, Spec: model.Workload{
			Endpoint: model.Endpoint{Address: "10.0.0.1", Labels: model.MapOf(map[string]string{"app": "shop"})}, Only: model.ListOf(only...),
		}}
	}
	selects := service("other", "s", "shop.example.com", "bank.internal")
	spec, _ := selects.Spec.(model.Service)
	spec.WorkloadSelector = model.MapOf(map[string]string{"app": "shop"})
	selects.Spec = spec

	b := catalog.NewBuilder([]string{"other", "confined"})
	serves := func() (hosts []string) {
		for s := range b.Snapshot().Services() {
			if s.Endpoints(80).Counts().Total > 0 {
				hosts = append(hosts, s.Key.Host)
			}
		}
		return hosts
	}
	for i, step := range []struct {
		events []model.Event
		want   []string
	}{
		{upserts(selects, vm("*.example.com")), []string{"shop.example.com"}},
		{upserts(vm("bank.internal")), []string{"bank.internal"}},
		{upserts(vm()), []string{"bank.internal", "shop.example.com"}},
		{upserts(vm("*.example.com")), []string{"shop.example.com"}},
		{deletes(selects), nil},
		{upserts(selects), []string{"shop.example.com"}},
		{deletes(vm("*.example.com")), nil},
		{upserts(vm("none.example")), nil},
	} {
		b.Apply(uint64(i+1), step.events)
		if got := serves(); !slices.Equal(got, step.want) {
			t.Errorf("after step %d it serves %q, want %q", i, got, step.want)
		}
	}
}
