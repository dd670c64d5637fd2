package envoy

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// An Envoy that takes hosts of large ports one by one ends with those that are in the
// route configuration of the port, whatever happens to it and to them.
func TestSingleHostsFoldToTheRouteConfiguration(t *testing.T) {
	checkFolds(t, newHostHistory)
}

// hostHistory is services that ask for the same domains, and Envoys that are sent them.
type hostHistory struct {
	folding

	t        *rapid.T
	settings *policy.Prepared
	builder  *catalog.Builder
	revision uint64
	envoys   []*hostEnvoy
}

func newHostHistory(t *rapid.T) *hostHistory {
	settings := policy.New()
	settings.VHDS.From = rapid.IntRange(0, 8).Draw(t, "from")
	h := &hostHistory{t: t, settings: settings.Prepare(), builder: catalog.NewBuilderIn(ruled)}
	h.serve()
	return h
}

func (h *hostHistory) run() {
	for _, namespace := range []string{"n", "m"} {
		h.envoys = append(h.envoys, &hostEnvoy{
			h: h, folder: folder{folding: &h.folding, name: namespace}, versions: map[world.Row]map[string]world.Version{}, routes: map[string]*hostTable{}, asked: map[string]bool{},
			asks: map[string]bool{"80": true, "80.hosts": true, "81": true, "81.hosts": rapid.Bool().Draw(h.t, "asks")},
		})
	}
	h.change()
	for range rapid.IntRange(1, 8).Draw(h.t, "rounds") {
		for range rapid.IntRange(1, 5).Draw(h.t, "acts") {
			h.act()
		}
		h.rest()
	}
}

func (h *hostHistory) act() {
	e := rapid.SampledFrom(h.envoys).Draw(h.t, "who")
	switch rapid.IntRange(0, 7).Draw(h.t, "act") {
	case 0:
		e.leave()
	case 7:
		e.turnTo(rapid.SampledFrom([]string{"80.hosts", "81.hosts"}).Draw(h.t, "routes"))
	case 1:
		e.connect()
	case 2, 3:
		e.turn(rapid.IntRange(0, 2).Draw(h.t, "NACKs") == 0)
	default:
		h.change()
	}
}

func (h *hostHistory) change() {
	events := rapid.SliceOfN(rapid.Custom(drawSimilarService), 1, 5).Draw(h.t, "events")
	if rapid.IntRange(0, 4).Draw(h.t, "scoped") == 0 {
		events = append(events, model.Upsert{Record: model.Record{
			Ref:  model.Ref{Kind: model.KindScope, Key: model.Key{Source: "first", Namespace: "m", Name: "s"}},
			Spec: model.Scope{Hosts: model.ListOf(rapid.SampledFrom([]string{"*/*", "./*", "n/*"}).Draw(h.t, "pattern"))},
		}})
	}
	h.apply(events...)
}

func (h *hostHistory) apply(events ...model.Event) {
	h.revision++
	h.log("%v", events)
	change := h.builder.Apply(h.revision, events)
	h.producer.Publish(stepOf(h.settings, h.builder.Snapshot(), change, true, "root", nil))
	synctest.Wait()
}

// rest has everybody take everything, and compares.
func (h *hostHistory) rest() {
	for range 2 { // the second is an ACK after which all that was NACKed is tried again
		for _, e := range h.envoys {
			e.connect()
			for e.turn(false) {
				continue
			}
		}
		h.apply(progress(h.revision)...)
	}
	for busy := true; busy; {
		busy = false
		for _, e := range h.envoys {
			busy = e.turn(false) || busy
		}
	}
	snapshot := h.builder.Snapshot()
	w := worldUnder(h.settings, snapshot, true, "root", nil)
	for _, e := range h.envoys {
		e.compare(w, snapshot)
	}
}

// progress changes a service of each port in each namespace, so that everybody ACKs
// something.
func progress(revision uint64) (events []model.Event) {
	for i, namespace := range []string{"n", "m"} {
		for _, port := range []uint32{80, 81} {
			host := fmt.Sprintf("%s-%d.com", namespace, port)
			events = append(events, model.Upsert{Record: model.Record{
				Ref: model.Ref{Kind: model.KindService, Key: model.Key{Source: "first", Namespace: namespace, Name: host}},
				Spec: model.Service{
					Hosts: model.ListOf(host), Resolution: model.ResolutionStatic, Addresses: model.ListOf(fmt.Sprintf("10.%d.%d.%d", 70+i, port, revision%250)),
					Ports: model.ListOf(model.Port{Number: port, Name: "it", Protocol: "HTTP"}),
				},
			}})
		}
	}
	return events
}

// A listener opens with the first response of hosts, so all are in it, however many.
func TestFirstHostsAreAllHosts(t *testing.T) {
	t.Parallel()
	const services = 9000
	builder := catalog.NewBuilder([]string{"s"})
	builder.Apply(1, kubernetesServices(services, 10))
	engine := push.New(push.Config{Order: xds.Order(), Frame: xds.Frame})
	producer := engine.Produce(Types(nil))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { engine.Run(ctx) })
	defer running.Wait()
	defer cancel()
	producer.Publish(world.Update{World: worldUnder((&policy.Settings{ClusterDomain: "cluster.local", VHDS: policy.VHDS{From: 500}}).Prepare(), builder.Snapshot(), true, "root", nil)})
	client := sidecarIn("ns-7")
	client.Increments, client.Release = true, [2]uint32{node.HostsFromMajor, node.HostsFromMinor}
	sub := engine.Connect(push.Info{ID: "it"}, client)
	defer sub.Close()
	for _, request := range []session.Request{{Type: producer.Type(RouteType), Subscribe: []string{"80.hosts"}}, {Type: producer.Type(VirtualHostType), Wildcard: session.WildcardOn}} {
		request.Mode = world.Delta
		if err := sub.Request(request); err != nil {
			t.Fatal(err)
		}
	}
	for {
		first := <-sub.Out()
		if first.Type != producer.Type(VirtualHostType) {
			continue
		}
		if len(first.Resources) != services {
			t.Errorf("the first response has %d hosts of %d", len(first.Resources), services)
		}
		return
	}
}

// Only an Envoy that takes single hosts is led to them: of a release that does, and over
// delta.
func TestWhoTakesSingleHosts(t *testing.T) {
	t.Parallel()
	builder := catalog.NewBuilder([]string{"s"})
	builder.Apply(1, kubernetesServices(500, 10))
	w := worldUnder(NewTranslator().Prepare(), builder.Snapshot(), true, "root", nil)
	for _, c := range []struct {
		increments bool
		release    [2]uint32
		routes     string
	}{
		{true, [2]uint32{1, 40}, "80.hosts"},
		{true, [2]uint32{2, 0}, "80.hosts"},
		{true, [2]uint32{1, 39}, "80"},
		{true, [2]uint32{}, "80"}, // it does not say
		{false, [2]uint32{1, 40}, "80"},
	} {
		client := sidecarIn("ns-7")
		client.Increments, client.Release = c.increments, c.release
		listener, ok := w.Find(w.View(ListenerType, client), ListenerType, names.Socket(names.AnyIPv4, 80))
		if !ok {
			t.Fatal("there is no listener")
		}
		if got := slices.Collect(listener.(world.Referrer).Refers(wire.RouteURL)); !slices.Equal(got, []string{c.routes}) { //nolint:forcetypeassert // it is one
			t.Errorf("%d.%d, increments %t: led to %v, want %s", c.release[0], c.release[1], c.increments, got, c.routes)
		}
		if _, ok := w.Find(w.View(RouteType, client), RouteType, "80.hosts"); ok != (c.routes == "80.hosts") {
			t.Errorf("%d.%d, increments %t: has 80.hosts: %t", c.release[0], c.release[1], c.increments, ok)
		}
	}
}
