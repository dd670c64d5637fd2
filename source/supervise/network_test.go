package supervise_test

import (
	"testing"
	"testing/synctest"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/supervise"
)

// Endpoints that name no network are in that of their source, whether they are listed, change
// alone or are workloads. The others stay where they are.
func TestEndpointsAreInTheNetworkOfTheirSource(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := connectWith(t, newLedger(), supervise.Config{Network: "vpc-2"})
		elsewhere := service("b", "f", "10.0.0.2")
		elsewhere.Owned[0].Spec = model.Endpoint{Address: "10.0.0.2", Network: "vpc-3"}
		b.list(service("a", "f", "10.0.0.1", "10.0.0.9"), elsewhere, workloadAt("vm", "10.0.0.3"))
		moves := model.Record{Ref: ref(model.KindEndpoint, "a/10.0.0.9"), Owner: ref(model.KindService, "a"), Spec: model.Endpoint{Address: "10.0.0.4"}}
		b.change(model.Change{OwnedUpserts: []model.Record{moves}})
		want := map[string]string{"10.0.0.1": "vpc-2", "10.0.0.2": "vpc-3", "10.0.0.3": "vpc-2", "10.0.0.4": "vpc-2"}
		for rec := range b.store.List(model.Filter{Source: "reg"}) {
			e, _ := rec.Spec.(model.Endpoint)
			if w, is := rec.Spec.(model.Workload); is {
				e = w.Endpoint
			}
			if e.Address != "" && e.Network != want[e.Address] {
				t.Errorf("%s is in the network %q, want %q", e.Address, e.Network, want[e.Address])
			}
			delete(want, e.Address)
		}
		if len(want) > 0 {
			t.Errorf("there is no record of %v", want)
		}
	})
}

// A network that is configured later holds for the stored records at once, as the registry may be
// away.
func TestStoredEndpointsGetTheNetwork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		b := connectWith(t, l, supervise.Config{})
		b.list(service("a", "f", "10.0.0.1"), workloadAt("vm", "10.0.0.3"))
		b = connectWith(t, l, supervise.Config{Network: "vpc-2"})
		b.fail("away")
		for rec := range b.store.List(model.Filter{Source: "reg"}) {
			e, _ := rec.Spec.(model.Endpoint)
			if w, is := rec.Spec.(model.Workload); is {
				e = w.Endpoint
			}
			if e.Address != "" && e.Network != "vpc-2" {
				t.Errorf("%s is in the network %q", e.Address, e.Network)
			}
		}
	})
}
