package push

import (
	"testing"
	"testing/synctest"
)

// unlisted is a world of notes of which not every source has been listed.
type unlisted struct{ notes }

func (unlisted) Complete() bool { return false }

func (w *notes) unlisted(put []*note, gone ...noteSlot) Update {
	u := w.step(put, gone...)
	u.World = unlisted{*w}
	return u
}

// A route that changes over to a new cluster waits for that one. Until it has been
// sent the client has the route to the old cluster, which must not go.
func TestRemovalWaitsForWhatIsHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{}, func(e *Engine) { p = e.Produce(references()) })
		w := newNotes(5)
		p.Publish(w.step([]*note{{clusters, "old", "1", nil}, {routes, "r", "1", to("cluster", "old")}}))
		s := deltaClient(e, Client{}, clusters, routes)
		s.said(e)
		p.Publish(w.step([]*note{{clusters, "new", "1", nil}, {routes, "r", "2", to("cluster", "new")}}, noteSlot{clusters, "old"}))
		wants(t, "the order", s.said(e), "cluster new 1", "route r 2", "cluster -old")
	})
}

// What refers to something that goes in the same step does not wait for the
// removal, which waits for it.
func TestReferenceToWhatIsGoneIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{}, func(e *Engine) { p = e.Produce(references()) })
		w := newNotes(5)
		p.Publish(w.step([]*note{{clusters, "c", "1", nil}, {routes, "r", "1", to("cluster", "c")}}))
		s := deltaClient(e, Client{}, clusters, routes)
		s.said(e)
		p.Publish(w.step([]*note{{routes, "r", "2", to("cluster", "c")}}, noteSlot{clusters, "c"}))
		wants(t, "the order", s.said(e), "route r 2", "cluster -c")
	})
}

// A route waits for a cluster that a wildcard asks for, even if nobody has looked
// yet what the wildcard gives.
func TestRouteWaitsForWhatAWildcardIsYetToGive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{}, func(e *Engine) { p = e.Produce(references()) })
		w := newNotes(5)
		p.Publish(w.step([]*note{{clusters, "a", "1", nil}, {clusters, "c", "1", nil}, {routes, "r", "1", to("cluster", "c")}}))
		s := e.Connect(Info{Protocol: protocols[Delta]}, Client{})
		s.ask(Request{Type: clusters, Subscribe: []string{"a"}})
		first := s.receive()
		s.ask(Request{Type: clusters, Wildcard: WildcardOn})
		s.ask(Request{Type: routes, Wildcard: WildcardOn})
		if empty := s.receive(); len(empty.Resources) > 0 {
			t.Errorf("%s came before its cluster", empty.Resources[0].Name)
		} else {
			s.accept(empty)
		}
		nothingComes(t, s)
		s.accept(first)
		wants(t, "then", s.said(e), "cluster c 1", "route r 1")
	})
}

// An assignment that is to be removed when its cluster is sent, and is back before
// that, is sent: the client waits for it.
func TestAssignmentThatIsBackIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{}, func(e *Engine) { p = e.Produce(references()) })
		w := newNotes(5)
		there := &note{assignments, "a", "1", nil}
		p.Publish(w.step([]*note{{clusters, "c", "1", to("assignment", "a")}, there}))
		s := deltaClient(e, Client{}, clusters, assignments)
		s.said(e)
		p.Publish(w.step([]*note{{clusters, "c", "2", to("assignment", "a")}}, noteSlot{assignments, "a"}))
		synctest.Wait()
		p.Publish(w.step([]*note{there}))
		wants(t, "the cluster and what it brings", s.said(e), "cluster c 2", "assignment a 1")
	})
}

// What nobody asks for any more is not said to be gone once every source has been
// listed.
func TestUnprovenNamesEndWithTheWildcard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{}, func(e *Engine) { p = e.Produce([]TypeSpec{{Name: "service"}}) })
		w := newNotes(1)
		p.Publish(w.unlisted(nil))
		s := e.Connect(Info{Protocol: protocols[Delta]}, Client{})
		s.ask(Request{Subscribe: []string{"x"}, Wildcard: WildcardOn})
		s.said(e)
		s.ask(Request{Unsubscribe: []string{"x"}})
		s.said(e)
		s.ask(Request{Wildcard: WildcardOff})
		p.Publish(w.step(nil))
		nothingComes(t, s)
	})
}

// Who asks for a name that came and went before its turn is answered that there is none.
func TestNameThatCameAndWentIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{Budget: 10}, func(e *Engine) { p = e.Produce([]TypeSpec{{Name: "service"}}) })
		w := newNotes(1)
		p.Publish(w.unlisted(nil))
		s := e.Connect(Info{Protocol: protocols[Delta]}, Client{})
		s.ask(Request{Subscribe: []string{"a", "x"}})
		wants(t, "nothing is known yet", s.said(e))
		p.Publish(w.unlisted([]*note{{0, "a", "ten bytes.", nil}, {0, "x", "1", nil}}))
		synctest.Wait()
		r := s.receive() // a alone, for there is no room
		p.Publish(w.unlisted(nil, noteSlot{0, "x"}))
		synctest.Wait()
		s.accept(r)
		wants(t, "before all is listed", s.said(e))
		p.Publish(w.step(nil))
		wants(t, "then", s.said(e), "service -x")
	})
}

// An assignment that a cluster brings, and that is gone again before its turn, is
// not removed a second time: its client knows that there is none.
func TestAssignmentThatIsGoneAgainIsNotRemovedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{}, func(e *Engine) { p = e.Produce(references()) })
		w := newNotes(5)
		there := &note{assignments, "a", "1", nil}
		p.Publish(w.step([]*note{{clusters, "c", "1", to("assignment", "a")}, there}))
		s := deltaClient(e, Client{}, clusters, assignments)
		s.ask(Request{Type: assignments, Subscribe: []string{"a"}})
		s.said(e)
		p.Publish(w.step(nil, noteSlot{assignments, "a"}))
		removal := s.receive()
		p.Publish(w.step([]*note{{clusters, "c", "2", to("assignment", "a")}, there}))
		s.accept(s.receive()) // the cluster
		p.Publish(w.step(nil, noteSlot{assignments, "a"}))
		synctest.Wait()
		s.accept(removal)
		wants(t, "once the removal is ACKed", s.said(e))
		p.Publish(w.step([]*note{there}))
		wants(t, "when it is back", s.said(e), "assignment a 1")
	})
}
