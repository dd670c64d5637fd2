package pushtest

import (
	"context"
	"iter"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// gate is a world of one type, whose names are all there, with content of its own.
// It calls find for each look-up.
type gate struct {
	content string
	find    func(name string)
}

func (*gate) View(world.Row, world.Client) world.View      { return "everything" }
func (*gate) Names(world.View, world.Row) iter.Seq[string] { return slices.Values([]string{}) }
func (*gate) Complete() bool                               { return true }
func (w *gate) Find(_ world.View, r world.Row, name string) (world.Subject, bool) {
	w.find(name)
	return &note{r, name, w.content}, true
}

// blocked runs an engine of which one worker is in a look-up for a client, which
// ends when release is called, and hands over what there is beside.
func blocked(t *testing.T, test func(e *push.Engine, p *push.Producer, stuck *push.Subscriber, w *gate, release func())) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		e := push.New(push.Config{Workers: 2, Frame: func(world.Encoded) (heads [2][]byte) { return heads }})
		p := e.Produce([]world.TypeSpec{{Name: "type"}})
		ctx, end := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			e.Run(ctx)
		}()
		open := make(chan struct{})
		w := &gate{"first", func(name string) {
			if name == "slow" {
				<-open
			}
		}}
		p.Publish(world.Update{World: w})
		stuck := subscribed(t, e, "slow")
		synctest.Wait()
		test(e, p, stuck, w, func() { close(open) })
		end()
		<-ended
	})
}

func subscribed(t *testing.T, e *push.Engine, name string) *push.Subscriber {
	t.Helper()
	s := e.Connect(push.Info{ID: name}, world.Client{})
	if err := s.Request(session.Request{Mode: world.Delta, Subscribe: []string{name}}); err != nil {
		t.Fatal(err)
	}
	return s
}

func received(t *testing.T, s *push.Subscriber, want string) {
	t.Helper()
	if r := next(t, s); r == nil || len(r.Resources) != 1 || string(r.Resources[0].Body) != want {
		t.Errorf("%s was sent %v, want %q", s.Info.ID, shown(r), want)
	}
}

// next takes and ACKs the response that a subscriber was sent; nil if there is none.
func next(t *testing.T, s *push.Subscriber) *session.Response {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-s.Out():
		s.Sent(r)
		if err := s.Request(session.Request{Mode: world.Delta, Answer: session.Answer{Kind: session.ACK, Serial: r.Serial}}); err != nil {
			t.Fatal(err)
		}
		return r
	default:
		return nil
	}
}

func shown(r *session.Response) string {
	if r == nil {
		return "nothing"
	}
	return responseText(r)
}

// receivedLast is what a subscriber ends with that may have been sent, before it, the
// content of a world that came just earlier: it may be assembled between the two.
func receivedLast(t *testing.T, s *push.Subscriber, want, earlier string) {
	t.Helper()
	r := next(t, s)
	if r != nil && len(r.Resources) == 1 && string(r.Resources[0].Body) == earlier {
		r = next(t, s)
	}
	if r == nil || len(r.Resources) != 1 || string(r.Resources[0].Body) != want {
		t.Errorf("%s was sent %v, want %q in the end", s.Info.ID, shown(r), want)
	}
}

// While a look-up for one client takes its time, others come, ask and are answered,
// and what is published reaches them.
func TestSlowLookUpKeepsNobodyElseWaiting(t *testing.T) {
	blocked(t, func(e *push.Engine, p *push.Producer, stuck *push.Subscriber, w *gate, release func()) {
		other := subscribed(t, e, "quick")
		received(t, other, "first")
		p.Publish(world.Update{World: &gate{"second", w.find}, Changed: []world.Changed{{Name: "quick"}}})
		received(t, other, "second")
		other.Close()
		release()
		received(t, stuck, "first")
	})
}

// Its own client can be closed once the look-up has ended, and is sent no more.
func TestCloseWaitsForTheLookUpUnderWay(t *testing.T) {
	blocked(t, func(e *push.Engine, _ *push.Producer, stuck *push.Subscriber, _ *gate, release func()) {
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			stuck.Close()
		}()
		release()
		<-closed
		if n := e.Len(); n != 0 {
			t.Errorf("%d subscribers are left", n)
		}
	})
}

// A world published while the dispatcher itself is in a look-up is taken at once, and
// reaches clients afterwards.
func TestPublishingWaitsForNoLookUp(t *testing.T) {
	blocked(t, func(e *push.Engine, p *push.Producer, stuck *push.Subscriber, w *gate, release func()) {
		step := make(chan struct{})
		slow := &gate{"second", func(string) { <-step }}
		other := subscribed(t, e, "quick")
		received(t, other, "first")
		p.Publish(world.Update{World: slow, Changed: []world.Changed{{Name: "quick"}}})
		synctest.Wait() // the dispatcher is in the look-up
		p.Publish(world.Update{World: &gate{"third", w.find}, Changed: []world.Changed{{Name: "quick"}}})
		close(step)
		release()
		receivedLast(t, other, "third", "second")
		received(t, stuck, "first")
	})
}

// A producer that finds in a look-up that its world is out of date may publish
// another from there.
func TestLookUpMayPublish(t *testing.T) {
	blocked(t, func(e *push.Engine, p *push.Producer, _ *push.Subscriber, w *gate, release func()) {
		again := func(string) {}
		second := &gate{"second", func(name string) { again(name) }}
		again = func(name string) {
			again = func(string) {}
			p.Publish(world.Update{World: &gate{"third", w.find}, Changed: []world.Changed{{Name: name}}})
		}
		other := subscribed(t, e, "quick")
		received(t, other, "first")
		p.Publish(world.Update{World: second, Changed: []world.Changed{{Name: "quick"}}})
		synctest.Wait()
		receivedLast(t, other, "third", "second")
		release()
	})
}
