package envoy

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/split"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// BenchmarkShares has endpoints come and go in 5,000 services, each with five endpoints in each
// of two sources, and measures from the record until an Envoy has the load assignment. One
// world has shares for every fifth service, the other has none; they take turns. Each metric is
// a quotient of medians, with shares by without: of changes of all services, and of those with
// shares alone.
func BenchmarkShares(b *testing.B) {
	const services, shared = 5000, 5
	splits := map[catalog.ServiceKey]*split.Split{}
	for n := 0; n < services; n += shared {
		splits[catalog.ServiceKey{Namespace: "n", Host: sharedHost(n)}] = &split.Split{Backends: []model.Backend{{Source: "a", Weight: 90}, {Source: "b", Weight: 10}}}
	}
	with, without := newSharesRig(b, services, splits), newSharesRig(b, services, nil)
	rigs := []*sharesRig{with, without}
	var all, some [2][]time.Duration
	for n := 0; b.Loop(); n++ {
		of := n / 2 * 7919 % services // each service twice in turn: an endpoint comes, and goes
		for k := range rigs {
			i := (k + n/2) % 2 // each goes first as often as the other
			took := rigs[i].change(b, of, n%2 == 0)
			all[i] = append(all[i], took)
			if of%shared == 0 {
				some[i] = append(some[i], took)
			}
		}
	}
	b.ReportMetric(median(all[0])/median(all[1]), "with/without")
	b.ReportMetric(median(some[0])/median(some[1]), "shared/same")
}

func sharedHost(n int) string { return fmt.Sprintf("service-%d.example", n) }

func median(list []time.Duration) float64 {
	slices.Sort(list)
	if len(list) == 0 {
		return 0
	}
	return float64(list[len(list)/2])
}

// sharesRig is a catalog with an Envoy that is sent its load assignments.
type sharesRig struct {
	builder  *catalog.Builder
	producer *push.Producer
	client   *push.Subscriber
	revision uint64
}

func newSharesRig(b *testing.B, services int, splits map[catalog.ServiceKey]*split.Split) *sharesRig {
	b.Helper()
	e := push.New(push.Config{Frame: func(world.Encoded) (heads [2][]byte) { return heads }})
	r := &sharesRig{builder: catalog.NewBuilderIn(catalog.Order{Sources: []string{"a", "b"}, Splits: splits}), producer: e.Produce(Types(nil))}
	go e.Run(b.Context())
	var events []model.Event
	var subscribed []string
	for n := range services {
		for at, source := range []string{"a", "b"} {
			owner := model.Ref{Kind: model.KindService, Key: model.Key{Source: source, Namespace: "n", Name: strconv.Itoa(n)}}
			events = append(events, model.Upsert{Record: model.Record{Ref: owner, Spec: model.Service{
				Hosts: model.ListOf(sharedHost(n)), Resolution: model.ResolutionStatic, Ports: model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}),
			}}})
			for i := range 5 {
				events = append(events, model.Upsert{Record: sharesEndpoint(owner, fmt.Sprintf("10.%d.%d.%d", n>>8, n&255, 10*at+i+1))})
			}
		}
		subscribed = append(subscribed, names.Cluster(sharedHost(n), 80))
	}
	r.publish(events)
	<-e.Primed()
	r.client = e.Connect(push.Info{}, world.Client{Kind: reach.KindEnvoy, Namespace: "n"})
	if err := r.client.Request(session.Request{Type: r.producer.Type(EndpointType), Mode: world.Delta, Subscribe: subscribed}); err != nil {
		b.Fatal(err)
	}
	r.answer(services)
	return r
}

func sharesEndpoint(owner model.Ref, address string) model.Record {
	ref := model.Ref{Kind: model.KindEndpoint, Key: owner.Key}
	ref.Name += "/" + address
	return model.Record{Ref: ref, Owner: owner, Spec: model.Endpoint{Address: address}}
}

func (r *sharesRig) publish(events []model.Event) {
	r.revision++
	change := r.builder.Apply(r.revision, events)
	r.producer.Publish(Step(r.builder.Snapshot(), change, true, "istio-system"))
}

// answer takes so many resources, and ACKs them.
func (r *sharesRig) answer(resources int) {
	for resources > 0 {
		response := <-r.client.Out()
		resources -= len(response.Resources)
		r.client.Sent(response)
		_ = r.client.Request(session.Request{Type: response.Type, Mode: response.Mode, Answer: session.Answer{Kind: session.ACK, Serial: response.Serial}})
	}
}

// change has an endpoint come or go, and returns how long that takes to reach the Envoy.
func (r *sharesRig) change(b *testing.B, service int, comes bool) time.Duration {
	b.Helper()
	owner := model.Ref{Kind: model.KindService, Key: model.Key{Source: "b", Namespace: "n", Name: strconv.Itoa(service)}}
	e := sharesEndpoint(owner, fmt.Sprintf("10.%d.%d.99", service>>8, service&255))
	event := model.Event(model.Upsert{Record: e})
	if !comes {
		event = model.Delete{Record: e}
	}
	began := time.Now()
	r.publish([]model.Event{event})
	r.answer(1)
	return time.Since(began)
}
