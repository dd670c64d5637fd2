package istio

import (
	"fmt"
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// Objects that were handed over by their label alone may be of any source. So
// none of them goes before all have been listed, and what nobody lists is held
// as what is missing of each.
func TestHandedOverByLabelAloneIsJudgedWithEverySource(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc", "files")
	for _, host := range hosts(0, 20) {
		o := handedOver(host)
		spec, _ := o["spec"].(kubeapi.Object)
		spec["ports"] = []any{kubeapi.Object{"number": 80, "name": "http"}}
		api.Put(entries+host, o)
	}
	for i, source := range []string{"sc", "sc", "files", "files"} {
		r.say(shop.Service(source, hostOf(i)), shop.Instance(source, hostOf(i), "10.0.0.1"))
	}
	r.listed("sc", "files")
	g := fresh(t, api, r, long, nil)
	g.Listed("sc")
	await(t, "the first to be judged", func() error { return g.awaits("sc") })
	g.deleted()
	g.Listed("files")
	g.lacks(16)
	if h := g.holdsFor("source files since the start lacks 16 of the 18 endpoints", hosts(4, 16)...); h.Endpoints != 1 {
		t.Errorf("%s is held: %d endpoints, %s", h.Name, h.Endpoints, h.Reason)
	}
	g.Released("files")
	g.deleted()
	g.Released("sc")
	g.holds()
	g.deleted(hosts(4, 16)...)
}

// A source that was given another name while nothing ran lists under that what
// it listed before: nothing goes.
func TestSourceRenamedWhileStoppedTakesNothingAway(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"old"}, fleet("old", 0, 20, 2)...)
	r.say(fleet("sc", 0, 20, 2)...)
	r.listed("sc")
	g := fresh(t, api, r, long, nil)
	g.Listed("sc")
	g.lacks(0)
	g.holds()
	g.deleted()
}

// What it does not list goes only when that is confirmed, and not before it has
// been listed at all.
func TestWhatARenamedSourceLacksIsHeld(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"old"}, fleet("old", 0, 20, 2)...)
	r.say(fleet("sc", 0, 1, 2)...)
	r.listed("sc")
	g := fresh(t, api, r, brief, nil)
	g.holdsFor("source old, a source of this object, is not configured", hosts(0, 20)...)
	g.Listed("sc")
	g.lacks(38)
	g.holds(hosts(1, 19)...)
	g.list()
	g.lacks(38)
	g.deleted()
	g.list()
	g.lacks(0)
	g.holds()
	g.deleted(hosts(1, 19)...)
}

// Two clusters may have the same addresses: an endpoint that one of them lacks does not hide behind the other. An object
// of before a source was given its network has lost nothing.
func TestNetworksOfOneAddressAreJudgedEach(t *testing.T) {
	t.Parallel()
	in := func(source, network string) []model.Event {
		events := []model.Event{shop.Service(source, hostOf(0))}
		for i := range 20 {
			events = append(events, shop.InstanceOf(source, hostOf(0), model.Endpoint{Address: fmt.Sprintf("10.0.0.%d", i+1), Network: network}))
		}
		return events
	}
	for name, test := range map[string]struct {
		written, listed []model.Event
		lacks           int
	}{
		"one of two lists nothing": {slices.Concat(in("files", "n1"), in("sc", "n2")), append(in("files", "n1"), shop.Service("sc", hostOf(0))), 20},
		"both list all":            {slices.Concat(in("files", "n1"), in("sc", "n2")), slices.Concat(in("files", "n1"), in("sc", "n2")), 0},
		"networks are given now":   {in("files", ""), append(in("files", "n1"), shop.Service("sc", hostOf(0))), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, r := newAPI(t), newRegistry("files", "sc")
			written(t, api, []string{"files", "sc"}, test.written...)
			r.say(test.listed...)
			r.listed("files", "sc")
			g := fresh(t, api, r, long, nil)
			g.Listed("files")
			g.Listed("sc")
			g.lacks(test.lacks)
			g.holds(hosts(0, min(test.lacks, 1))...)
		})
	}
}
