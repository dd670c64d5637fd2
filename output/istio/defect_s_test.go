package istio

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

func spec(api *kubeapi.Server, host string) kubeapi.Object {
	s, _ := api.Get(entries + host)["spec"].(kubeapi.Object)
	return s
}

// Defect S: every proxy saw every service. Who a service is exported to is
// written, and so are scopes if they are asked for.
func TestDefectSVisibilityIsWritten(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	up, _ := shop.Service("sc", "a.example").(model.Upsert)
	s, _ := up.Record.Spec.(model.Service)
	s.ExportTo = model.ListOf(".", "web")
	up.Record.Spec = s
	scope := model.Record{
		Ref:  model.Ref{Kind: model.KindScope, Key: model.Key{Source: "sc", Namespace: "shop", Name: "cart"}},
		Spec: model.Scope{WorkloadSelector: model.MapOf(map[string]string{"app": "cart"}), Hosts: model.ListOf("./*", "istio-system/*.example")},
	}
	r.say(up, model.Upsert{Record: scope})
	r.listed("sc")
	w := start(t, api, r, func(c *Config, _ *Options) { c.Sidecars = true })
	const sidecar = "networking.istio.io/v1/namespaces/shop/sidecars/cart"
	await(t, "both to be written", func() error {
		want := "map[egress:[map[hosts:[./* istio-system/*.example]]] workloadSelector:map[labels:map[app:cart]]]"
		if got := fmt.Sprint(api.Get(sidecar)["spec"]); got != want {
			return fmt.Errorf("the scope is %s", got)
		}
		if got := fmt.Sprint(spec(api, "a.example")["exportTo"]); got != "[. web]" {
			return fmt.Errorf("exported to %s", got)
		}
		return nil
	})
	settled(t, w)
	r.say(model.Delete{Record: scope})
	await(t, "the scope to go", func() error {
		if api.Get(sidecar) != nil {
			return fmt.Errorf("it is there")
		}
		return nil
	})
}

// A name that names a namespace is exported by that namespace alone, whichever source has it
// first. The ServiceEntry of another namespace is seen there and nowhere else.
func TestNameOfAnotherNamespaceIsExportedToItsOwnAlone(t *testing.T) {
	t.Parallel()
	const host = "reviews.shop.svc.cluster.local"
	theirs, _ := shop.Service("first", host).(model.Upsert)
	theirs.Record.Namespace = "aaa-evil"
	for name, come := range map[string][]model.Event{
		"theirs comes first": {theirs, shop.Service("second", host)},
		"ours comes first":   {shop.Service("second", host), theirs},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, r := newAPI(t), newRegistry("first", "second")
			r.builder = catalog.NewBuilderIn(catalog.Order{Sources: []string{"first", "second"}, Domains: []string{"cluster.local"}})
			r.listed("first", "second")
			w := start(t, api, r, nil)
			settled(t, w)
			for _, one := range come {
				r.say(one)
			}
			await(t, "both to be written", func() error {
				theirs, _ := api.Get("networking.istio.io/v1/namespaces/aaa-evil/serviceentries/" + host)["spec"].(kubeapi.Object)
				ours := spec(api, host)
				if got := fmt.Sprint(theirs["exportTo"], ours["hosts"], ours["exportTo"]); got != "[.] ["+host+"] <nil>" {
					return fmt.Errorf("theirs is exported to, ours has the hosts, and is exported to: %s", got)
				}
				return nil
			})
		})
	}
}

// Defect T: a steady trickle cost every change ten seconds, and calls went one
// after the other. A service waits for its own changes only as long as is set,
// and is not held up by others.
func TestDefectTManyServicesAreWrittenAtOnce(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	r.listed("sc")
	w := start(t, api, r, nil)
	settled(t, w)
	var calls atomic.Int64
	second := make(chan struct{})
	api.Before(func(verb, _ string) { // no write ends before another one has begun
		if verb != "PATCH" {
			return
		}
		if calls.Add(1) == 2 {
			close(second)
		}
		select {
		case <-second:
		case <-time.After(until.Patience):
			t.Error("writes go one after the other")
		}
	})
	var events []model.Event
	for i := range 100 {
		host := fmt.Sprintf("h%d.example", i)
		events = append(events, shop.Service("sc", host), shop.Instance("sc", host, "10.0.0.1"))
	}
	r.say(events...)
	for i := range 100 {
		wants(t, api, fmt.Sprintf("h%d.example", i), "10.0.0.1")
	}
}

// A writer that is given nothing new writes nothing.
func TestNothingIsWrittenTwice(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	r.say(shop.Service("sc", "a.example"), shop.Instance("sc", "a.example", "10.0.0.1"))
	r.listed("sc")
	w := start(t, api, r, nil)
	wants(t, api, "a.example", "10.0.0.1")
	settled(t, w)
	for range 10 {
		r.say(shop.Instance("sc", "a.example", "10.0.0.1"))
		w.Publish(r.builder.Snapshot(), catalog.Change{Services: map[catalog.ServiceKey]catalog.ServiceChange{
			{Namespace: "shop", Host: "a.example"}: {},
		}}, true)
	}
	settled(t, w)
	if writes := api.Writes(); len(writes) != 1 {
		t.Errorf("writes: %v", writes)
	}
}
