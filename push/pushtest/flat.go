package pushtest

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Step is a step from one world to the next that concerns a single client.
type Step struct {
	Row world.Row
	// First is the first update, and Next the update that changes one resource of the row for
	// one client.
	First, Next world.Update
	// Client returns one of the clients.
	Client func(n int) world.Client
	// Names returns the names that a client subscribes to. Without it all clients subscribe
	// to every resource of the row.
	Names func(n int) []string
	// Concerned is the number of the client that the change is for.
	Concerned int
}

// Looks bounds the look-ups that a change of one resource may take for the affected client:
// the views and the resource in both worlds, by the dispatcher and by a worker.
const Looks = 10

// subscription is the first request of a client.
func (s Step) subscription(t world.Type, n int) session.Request {
	if s.Names == nil {
		return session.Request{Type: t, Mode: world.Delta, Wildcard: session.WildcardOn}
	}
	return session.Request{Type: t, Mode: world.Delta, Subscribe: s.Names(n)}
}

// Flat checks that a change which affects one of many clients costs look-ups for that
// client alone, and reaches no other client.
func Flat(t *testing.T, rows []world.TypeSpec, clients int, step Step) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		e := push.New(push.Config{Workers: 1, Frame: func(world.Encoded) (heads [2][]byte) { return heads }})
		p := e.Produce(rows)
		ctx, end := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			e.Run(ctx)
		}()
		defer func() {
			end()
			<-ended
		}()
		var looks atomic.Int64
		publish := func(u world.Update) {
			u.World = &counted{u.World, &looks}
			p.Publish(u)
			synctest.Wait()
		}
		publish(step.First)
		list := make([]*push.Subscriber, clients)
		for n := range list {
			list[n] = e.Connect(push.Info{}, step.Client(n))
			if err := list[n].Request(step.subscription(p.Type(step.Row), n)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		for _, s := range list {
			ackAll(s)
		}
		synctest.Wait()
		looks.Store(0)
		publish(step.Next)
		if n := looks.Load(); n == 0 || n > Looks {
			t.Errorf("a change for one client of %d took %d look-ups", clients, n)
		}
		for n, s := range list {
			if got := ackAll(s); (got > 0) != (n == step.Concerned) {
				t.Errorf("client %d was sent %d responses for a change that concerns client %d", n, got, step.Concerned)
			}
		}
	})
}

// ackAll reads and ACKs all pending responses.
func ackAll(s *push.Subscriber) (n int) {
	for {
		select {
		case r := <-s.Out():
			n++
			s.Sent(r)
			// The request asks for nothing, so no budget can be exceeded.
			_ = s.Request(session.Request{Type: r.Type, Mode: r.Mode, Answer: session.Answer{Kind: session.ACK, Serial: r.Serial}})
		default:
			return n
		}
	}
}

// counted is a world that counts its look-ups.
type counted struct {
	world.World
	looks *atomic.Int64
}

func (w *counted) View(r world.Row, c world.Client) world.View {
	w.looks.Add(1)
	return w.World.View(r, c)
}

func (w *counted) Names(v world.View, r world.Row) iter.Seq[string] {
	w.looks.Add(1)
	return w.World.Names(v, r)
}

func (w *counted) Find(v world.View, r world.Row, name string) (world.Subject, bool) {
	w.looks.Add(1)
	return w.World.Find(v, r, name)
}
