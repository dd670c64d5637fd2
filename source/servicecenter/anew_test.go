package servicecenter_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	standin "github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

// A process that starts anew in place registers under another id, and the registry keeps the former
// one until its lease is over. What the new one says counts, whichever id comes first.
func TestTheNewestRegistrationSpeaksForItsAddress(t *testing.T) {
	for name, ids := range map[string][2]string{"the former id comes first": {"1c9e", "f00d"}, "the new id comes first": {"f00d", "1c9e"}} {
		for _, now := range []string{"UP", "STARTING"} {
			t.Run(name+", "+now, func(t *testing.T) {
				bubble(t, prompt, func(r *rig) {
					id := r.service("", "cart", "1.0.0")
					r.instance(id, ids[0], "10.2.0.2:8080")
					if now == "UP" {
						r.SetStatus(id, ids[0], "DOWN")
					}
					r.pass(10 * time.Second)
					r.RegisterInstance(id, standin.Instance{ID: ids[1], Status: now, Endpoints: []string{"rest://10.2.0.2:8080"}})
					r.mirror(r.config())
					r.rounds(1)

					b := catalog.NewBuilder([]string{"sc"})
					var events []model.Event
					for rec := range r.store.List(model.Filter{Source: "sc"}) {
						events = append(events, model.Upsert{Record: rec})
					}
					b.Apply(1, events)
					for s := range b.Snapshot().Services() {
						healthy, total := s.Counts()
						if want := map[string]int{"UP": 1, "STARTING": 0}[now]; healthy != want || total != 1 {
							t.Errorf("%d of %d endpoints are healthy, want %d", healthy, total, want)
						}
					}
					if n := b.Snapshot().Totals().Services; n != 1 {
						t.Errorf("there are %d services", n)
					}
				})
			})
		}
	}
}

func TestAWeightOfZeroTakesNoCalls(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		id := r.service("", "cart", "1.0.0")
		for i, of := range []standin.Instance{
			{ID: "none"},
			{ID: "some", Properties: map[string]string{"weight": "5"}},
			{ID: "zero", Properties: map[string]string{"weight": "0"}},
			{ID: "odd", Properties: map[string]string{"weight": "-0"}},
			{ID: "down", Properties: map[string]string{"weight": "0"}, Status: "DOWN"},
		} {
			of.Endpoints = []string{fmt.Sprintf("rest://10.0.0.%d:8080", i)}
			r.RegisterInstance(id, of)
		}
		m := r.mirror(r.config())
		m.wants("cart at default//shop/cart: http-8080", "cart/none = 10.0.0.0", "cart/some = 10.0.0.1", "cart/zero = 10.0.0.2 DRAINING", "cart/odd = 10.0.0.3", "cart/down = 10.0.0.4 UNHEALTHY")
	})
}
