package envoy

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// watched is a world that notes whose views are asked for.
type watched struct {
	world.World
	mu  *sync.Mutex
	who map[string]int
}

func (w watched) View(r world.Row, c world.Client) world.View {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.who[c.Addresses[0]]++
	return w.World.View(r, c)
}

// One workload among 5,000 of a namespace comes to serve another port: the view of its
// sidecar is looked at, and no other.
func TestOneWorkloadAmong5000IsLookedAt(t *testing.T) {
	const many, moved = 5000, 1234
	at := func(n int) string { return fmt.Sprintf("10.0.%d.%d", n>>8, n&255) }
	builder := catalog.NewBuilderIn(dated("first"))
	events := behind{name: "all", ports: []model.Port{{Number: 80, Name: "http", Protocol: "HTTP"}}, endpoint: model.Endpoint{Address: at(0)}}.events()
	one := events[1].(model.Upsert).Record
	for n := range many {
		r := one
		r.Name = fmt.Sprintf("all/%d", n)
		r.Spec = model.Endpoint{Address: at(n)}
		events = append(events, model.Upsert{Record: r})
	}
	events = append(events, behind{
		name: "new", ports: []model.Port{{Number: 9000, Name: "tcp", Protocol: "TCP"}}, endpoint: model.Endpoint{Address: "10.9.9.9"},
	}.events()...)
	builder.Apply(1, events)

	ctx, cancel := context.WithTimeout(t.Context(), until.Patience)
	engine := push.New(push.Config{Frame: func(world.Encoded) (heads [2][]byte) { return heads }})
	var running sync.WaitGroup
	running.Go(func() { engine.Run(ctx) })
	t.Cleanup(running.Wait)
	t.Cleanup(cancel)
	producer := engine.Produce(Types(nil))
	var mu sync.Mutex
	first := watched{NewWorld(builder.Snapshot(), true, "istio-system"), &mu, map[string]int{}}
	producer.Publish(world.Update{World: first})
	var subscribers []*push.Subscriber
	for n := range many {
		s := engine.Connect(push.Info{ID: at(n)}, sidecarAt(at(n)))
		if err := s.Request(session.Request{Type: producer.Type(ListenerType), Mode: world.Delta, Wildcard: session.WildcardOn}); err != nil {
			t.Fatal(err)
		}
		subscribers = append(subscribers, s)
	}
	for _, s := range subscribers {
		if got := received(ctx, t, s); len(got) == 0 {
			t.Fatal("a sidecar is sent no listeners")
		}
	}

	mu.Lock()
	clear(first.who)
	mu.Unlock()
	another := one
	another.Name, another.Owner.Name, another.Spec = "new/2", "new", model.Endpoint{Address: at(moved)}
	change := builder.Apply(2, []model.Event{model.Upsert{Record: another}})
	update := Step(builder.Snapshot(), change, true, "istio-system")
	update.World = watched{update.World, &mu, first.who}
	producer.Publish(update)
	if got := received(ctx, t, subscribers[moved]); len(got) != 1 || got[0] != names.VirtualInbound {
		t.Errorf("it is sent %v", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if _, looked := first.who[at(moved)]; !looked || len(first.who) != 1 {
		t.Errorf("views were looked at of %d clients: %.200v", len(first.who), first.who)
	}
}

// received takes the next response, ACKs it, and returns the names in it.
func received(ctx context.Context, t *testing.T, s *push.Subscriber) (names []string) {
	t.Helper()
	select {
	case r := <-s.Out():
		s.Sent(r)
		for _, resource := range r.Resources {
			names = append(names, resource.Name)
		}
		if err := s.Request(session.Request{Type: r.Type, Answer: session.Answer{Kind: session.ACK, Serial: r.Serial}}); err != nil {
			t.Fatal(err)
		}
		return names
	case <-ctx.Done():
		t.Fatal("nothing was sent")
		return nil
	}
}
