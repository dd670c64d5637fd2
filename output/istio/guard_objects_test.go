package istio

import (
	"fmt"
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// A service that had more than min endpoints, and lost them all, is held alone,
// be it there without endpoints or not at all; the other ones go.
func TestEmptiedServiceIsHeldAlone(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, slices.Concat(fleet("sc", 0, 20, 2), fleet("sc", 20, 2, 11), fleet("sc", 22, 1, 13))...)
	r.say(slices.Concat(fleet("sc", 0, 19, 2), fleet("sc", 21, 1, 0), fleet("sc", 22, 1, 1))...)
	r.listed("sc")
	g := fresh(t, api, r, brief, nil)
	g.Listed("sc")
	g.lacks(22)
	if h := g.holdsFor("all 11 endpoints of ServiceEntry shop/s20.example", hosts(20, 2)...); h.Endpoints != 11 {
		t.Errorf("%s is held: %d endpoints, %s", h.Name, h.Endpoints, h.Reason)
	}
	g.deleted(hostOf(19))
	wants(t, api, hostOf(22), "10.0.22.1")              // it has lost more, but not everything
	r.say(shop.Instance("sc", hostOf(21), "10.0.21.1")) // one of the two is coming back
	g.list()
	g.lacks(21)
	g.list()
	g.lacks(0)
	wants(t, api, hostOf(20), "no object")
	g.holds()
}

// Services without endpoints, and scopes, are no part of what makes a drop
// suspicious, but of what is held.
func TestWhatHasNoEndpointsIsHeldWithTheRest(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	scope := model.Upsert{Record: model.Record{
		Ref:  model.Ref{Kind: model.KindScope, Key: model.Key{Source: "sc", Namespace: "shop", Name: "default"}},
		Spec: model.Scope{Hosts: model.ListOf("./*")},
	}}
	sidecars := func(c *Config, _ *Options) { c.Sidecars = true }
	before := newRegistry("sc")
	before.say(slices.Concat(fleet("sc", 0, 9, 2), fleet("sc", 9, 1, 0), []model.Event{scope})...)
	before.listed("sc")
	w := start(t, api, before, sidecars)
	sees(t, w, 11)
	w.stop()
	r.listed("sc")
	g := fresh(t, api, r, long, sidecars)
	g.Listed("sc")
	g.lacks(18)
	g.holds(append(hosts(0, 10), "default")...)
	g.Released("sc")
	g.holds()
	sees(t, g.running, 0)
}

// An instance that the registry lists is not missing, whatever becomes of it.
func TestWhatIsNotFitToBeWrittenIsNotMissing(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, fleet("sc", 0, 1, 30)...)
	r.say(shop.Service("sc", hostOf(0)))
	for e := range 30 {
		health := model.Unhealthy
		if e == 0 {
			health = model.Healthy
		}
		r.say(shop.InstanceOf("sc", hostOf(0), model.Endpoint{Address: fmt.Sprintf("10.0.0.%d", e+1), Health: health}))
	}
	r.listed("sc")
	g := fresh(t, api, r, long, nil)
	g.Listed("sc")
	wants(t, api, hostOf(0), "10.0.0.1")
	g.holds()
}

// Instances that share a machine are distinguished, and shards are one service.
func TestEndpointsAreDistinguishedByTheirPorts(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	crowd := func(n int) []model.Event {
		events := []model.Event{shop.Service("sc", hostOf(0))}
		for i := range n {
			ref := shop.ServiceRef("sc", hostOf(0))
			ref.Kind, ref.Name = model.KindEndpoint, fmt.Sprintf("%s/%d", hostOf(0), i)
			events = append(events, model.Upsert{Record: model.Record{Ref: ref, Owner: shop.ServiceRef("sc", hostOf(0)), Spec: model.Endpoint{
				Address: "10.0.0.1", Ports: model.MapOf(map[string]uint32{"http": uint32(8000 + 2*i), "grpc": uint32(8001 + 2*i)}),
			}}})
		}
		return events
	}
	written(t, api, []string{"sc"}, crowd(30)...)
	r.say(crowd(6)...)
	r.listed("sc")
	g := fresh(t, api, r, long, func(c *Config, _ *Options) { c.ShardSize = 10 })
	g.Listed("sc")
	g.lacks(24)
	if h := g.holds(hostOf(0)); h.Endpoints != 24 {
		t.Errorf("%s is held: %d endpoints, %s", h.Name, h.Endpoints, h.Reason)
	}
}

// What was restored from disk is known to the source's supervisor, which holds
// by itself what it has to.
func TestRestoredSourceIsNotCompared(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, fleet("sc", 0, 20, 2)...)
	r.say(fleet("sc", 0, 1, 2)...)
	r.listed("sc")
	g := fresh(t, api, r, long, func(_ *Config, o *Options) { o.Restored = []string{"sc"} })
	g.Listed("sc")
	for _, host := range hosts(1, 19) {
		wants(t, api, host, "no object")
	}
	g.holds()
}

// At the first start ever there is nothing of ours: neither in an empty API
// server, nor in one with objects of others.
func TestFirstStartHoldsNothing(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	for i := range 30 {
		o := handedOver(fmt.Sprintf("other%02d.example", i))
		delete(o["metadata"].(kubeapi.Object), "labels") //nolint:forcetypeassert // it is one
		api.Put(entries+fmt.Sprintf("other%02d.example", i), o)
	}
	r.say(fleet("sc", 0, 3, 2)...)
	r.listed("sc")
	g := fresh(t, api, r, long, nil)
	g.Listed("sc")
	for i := range 3 {
		wants(t, api, hostOf(i), fmt.Sprintf("10.0.%d.1 10.0.%d.2", i, i))
	}
	g.holds()
	g.deleted()
}

// Nobody knows which of its sources an endpoint of an object came from. So the
// object waits until all have been listed, and for any that has lost much.
func TestObjectsOfSeveralSourcesAreComparedOnceAllAreListed(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc", "files")
	both := fleet("sc", 0, 20, 2)
	for i := range 20 {
		both = append(both, shop.Instance("files", hostOf(i), fmt.Sprintf("10.1.%d.1", i)), shop.Service("files", hostOf(i)))
	}
	written(t, api, []string{"sc", "files"}, both...)
	r.say(fleet("sc", 0, 1, 2)...)
	r.listed("sc")
	g := fresh(t, api, r, long, nil)
	g.Listed("sc")
	g.holdsFor("source files, a source of this object, has not been listed yet", hosts(0, 20)...)
	for i := range 20 {
		r.say(shop.Instance("files", hostOf(i), fmt.Sprintf("10.1.%d.1", i)), shop.Service("files", hostOf(i)))
	}
	r.listed("files")
	g.Listed("files")
	g.lacks(38)
	g.holdsFor("source files since the start lacks 38 of the 58 endpoints", hosts(1, 19)...)
	g.Released("files")
	g.holdsFor("source sc since the start lacks 38 of the 40 endpoints", hosts(1, 19)...)
	g.deleted()
	g.Released("sc")
	wants(t, api, hostOf(1), "10.1.1.1")
	g.holds()
}
