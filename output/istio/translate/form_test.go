package translate

import (
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// A service takes the second form by its size, and does not go back at once. With DNS it never does.
func TestAutoGoesBySize(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		endpoints int
		now, want bool
	}{
		{autoAbove, false, false}, {autoAbove + 1, false, true}, {autoAbove, true, true}, {autoAbove / 2, true, true}, {autoAbove/2 - 1, true, false}, {0, true, false},
	} {
		if got := (Settings{Endpoints: Auto}).IsWorkloads(shop.Fleet(test.endpoints, nil), test.now); got != test.want {
			t.Errorf("%d endpoints, now %t: %t", test.endpoints, test.now, got)
		}
	}
	names := shop.Service("sc", "a.example").(model.Upsert)
	says := names.Record.Spec.(model.Service)
	says.Resolution = model.ResolutionDNS
	names.Record.Spec = says
	b := catalog.NewBuilder(nil)
	b.Apply(1, []model.Event{names, shop.Instance("sc", "a.example", "b.example")})
	s := slices.Collect(b.Snapshot().Services())[0]
	if (Settings{Endpoints: WorkloadEntries}).IsWorkloads(s, true) || (Settings{Endpoints: Auto}).IsWorkloads(s, true) {
		t.Error("a service with DNS has objects of endpoints")
	}
}
