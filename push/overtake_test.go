package push

import (
	"testing"
	"testing/synctest"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// unlisted is a world of notes of which not every source has been listed.
type unlisted struct{ notes }

func (unlisted) Complete() bool { return false }

func (w *notes) unlisted(put []*note, gone ...noteSlot) world.Update {
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
		s := deltaClient(e, world.Client{}, clusters, routes)
		s.receiveAll(e)
		p.Publish(w.step([]*note{{clusters, "new", "1", nil}, {routes, "r", "2", to("cluster", "new")}}, noteSlot{clusters, "old"}))
		wants(t, "the order", s.receiveAll(e), "cluster new 1", "route r 2", "cluster -old")
	})
}

// A resource that refers to something that goes in the same step does not wait for
// the removal. The removal waits for the resource.
func TestReferenceToWhatIsGoneIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{}, func(e *Engine) { p = e.Produce(references()) })
		w := newNotes(5)
		p.Publish(w.step([]*note{{clusters, "c", "1", nil}, {routes, "r", "1", to("cluster", "c")}}))
		s := deltaClient(e, world.Client{}, clusters, routes)
		s.receiveAll(e)
		p.Publish(w.step([]*note{{routes, "r", "2", to("cluster", "c")}}, noteSlot{clusters, "c"}))
		wants(t, "the order", s.receiveAll(e), "route r 2", "cluster -c")
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
		s := e.Connect(Info{Protocol: protocols[world.Delta]}, world.Client{})
		s.ask(session.Request{Type: clusters, Subscribe: []string{"a"}})
		first := s.receive()
		s.ask(session.Request{Type: clusters, Wildcard: session.WildcardOn})
		s.ask(session.Request{Type: routes, Wildcard: session.WildcardOn})
		if empty := s.receive(); len(empty.Resources) > 0 {
			t.Errorf("%s came before its cluster", empty.Resources[0].Name)
		} else {
			s.ack(empty)
		}
		nothingComes(t, s)
		s.ack(first)
		wants(t, "then", s.receiveAll(e), "cluster c 1", "route r 1")
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
		s := deltaClient(e, world.Client{}, clusters, assignments)
		s.receiveAll(e)
		p.Publish(w.step([]*note{{clusters, "c", "2", to("assignment", "a")}}, noteSlot{assignments, "a"}))
		synctest.Wait()
		p.Publish(w.step([]*note{there}))
		wants(t, "the cluster and what it brings", s.receiveAll(e), "cluster c 2", "assignment a 1")
	})
}

// A name that is no longer asked for is not removed once every source has been listed.
func TestUnprovenNamesEndWithTheWildcard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{}, func(e *Engine) { p = e.Produce([]world.TypeSpec{{Name: "service"}}) })
		w := newNotes(1)
		p.Publish(w.unlisted(nil))
		s := e.Connect(Info{Protocol: protocols[world.Delta]}, world.Client{})
		s.ask(session.Request{Subscribe: []string{"x"}, Wildcard: session.WildcardOn})
		s.receiveAll(e)
		s.ask(session.Request{Unsubscribe: []string{"x"}})
		s.receiveAll(e)
		s.ask(session.Request{Wildcard: session.WildcardOff})
		p.Publish(w.step(nil))
		nothingComes(t, s)
	})
}

// A client that asks for a name that came and went before its turn is sent a removal.
func TestNameThatCameAndWentIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{Budget: 10}, func(e *Engine) { p = e.Produce([]world.TypeSpec{{Name: "service"}}) })
		w := newNotes(1)
		p.Publish(w.unlisted(nil))
		s := e.Connect(Info{Protocol: protocols[world.Delta]}, world.Client{})
		s.ask(session.Request{Subscribe: []string{"a", "x"}})
		wants(t, "nothing is known yet", s.receiveAll(e))
		p.Publish(w.unlisted([]*note{{0, "a", "ten bytes.", nil}, {0, "x", "1", nil}}))
		synctest.Wait()
		r := s.receive() // a alone, for there is no room
		p.Publish(w.unlisted(nil, noteSlot{0, "x"}))
		synctest.Wait()
		s.ack(r)
		wants(t, "before all is listed", s.receiveAll(e))
		p.Publish(w.step(nil))
		wants(t, "then", s.receiveAll(e), "service -x")
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
		s := deltaClient(e, world.Client{}, clusters, assignments)
		s.ask(session.Request{Type: assignments, Subscribe: []string{"a"}})
		s.receiveAll(e)
		p.Publish(w.step(nil, noteSlot{assignments, "a"}))
		removal := s.receive()
		p.Publish(w.step([]*note{{clusters, "c", "2", to("assignment", "a")}, there}))
		s.ack(s.receive()) // the cluster
		p.Publish(w.step(nil, noteSlot{assignments, "a"}))
		synctest.Wait()
		s.ack(removal)
		wants(t, "once the removal is ACKed", s.receiveAll(e))
		p.Publish(w.step([]*note{there}))
		wants(t, "when it is back", s.receiveAll(e), "assignment a 1")
	})
}

// A client that asks again for a name may take a response on its way for the answer.
// If the name is gone by then, it is removed, whichever way it was asked for.
func TestWhatCrossedTheEndOfASubscriptionIsRemoved(t *testing.T) {
	all, named := session.Request{Wildcard: session.WildcardOn}, session.Request{Subscribe: []string{"gone"}}
	for name, requests := range map[string][3]session.Request{
		"all of them":      {all, {Wildcard: session.WildcardOff}, all},
		"the name":         {named, {Unsubscribe: []string{"gone"}}, named},
		"first by name":    {named, {Unsubscribe: []string{"gone"}}, all},
		"first everything": {all, {Wildcard: session.WildcardOff}, named},
	} {
		for _, absent := range []world.Absence{world.Removal, world.Silence} {
			synctest.Test(t, func(t *testing.T) {
				var p *Producer
				e := start(t, Config{}, func(e *Engine) {
					p = e.Produce([]world.TypeSpec{{Name: "cluster", Absent: func(string, world.Mode) world.Absence { return absent }}})
				})
				w := newNotes(1)
				p.Publish(w.step([]*note{{0, "gone", "1", nil}}))
				s := e.Connect(Info{Protocol: protocols[world.Delta]}, world.Client{})
				s.ask(requests[0])
				onItsWay := s.receive()
				p.Publish(w.step(nil, noteSlot{0, "gone"}))
				synctest.Wait()
				s.ask(requests[1])
				s.ask(requests[2])
				s.ack(onItsWay)
				wants(t, name, s.receiveAll(e), "cluster -gone")
			})
		}
	}
}

// A resource whose response was answered before the client asks again is forgotten.
func TestWhatIsForgottenIsNotRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{}, func(e *Engine) { p = e.Produce([]world.TypeSpec{{Name: "cluster"}}) })
		w := newNotes(1)
		p.Publish(w.step([]*note{{0, "gone", "1", nil}, {0, "here", "1", nil}}))
		s := deltaClient(e, world.Client{}, 0)
		onItsWay := s.receive()
		p.Publish(w.step(nil, noteSlot{0, "gone"}))
		synctest.Wait()
		s.ask(session.Request{Wildcard: session.WildcardOff})
		s.ack(onItsWay)
		s.ask(session.Request{Wildcard: session.WildcardOn})
		wants(t, "what it is sent", s.receiveAll(e), "cluster here 1")
	})
}

// The removal of a resource that had been there is not sent again once every source
// has been listed.
func TestRemovalIsNotSentAgainOnceEverythingIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{}, func(e *Engine) { p = e.Produce([]world.TypeSpec{{Name: "cluster"}}) })
		w := newNotes(1)
		p.Publish(w.unlisted(nil))
		s := e.Connect(Info{Protocol: protocols[world.Delta]}, world.Client{})
		s.ask(session.Request{Subscribe: []string{"c"}, Held: map[string]world.Version{"c": world.VersionOf([]byte("1"))}})
		wants(t, "while it may be listed yet", s.receiveAll(e))
		p.Publish(w.unlisted([]*note{{0, "c", "1", nil}}))
		wants(t, "when it is as it was", s.receiveAll(e))
		p.Publish(w.unlisted(nil, noteSlot{0, "c"}))
		wants(t, "when it goes", s.receiveAll(e), "cluster -c")
		p.Publish(w.step(nil))
		wants(t, "once everything is listed", s.receiveAll(e))
	})
}

// Who has asked for a name before everything was listed, and names it no longer, is not
// sent the same set again once nobody can list it any more.
func TestSetIsNotSentAgainForWhatIsNotNamedAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{}, func(e *Engine) {
			p = e.Produce([]world.TypeSpec{{
				Name: "listener", Whole: true, Absent: func(string, world.Mode) world.Absence { return world.Empty },
				Empty: func(name string) world.Encoded { return world.Encoded{Name: name, Body: []byte("empty")} },
			}})
		})
		w := newNotes(1)
		s := e.Connect(Info{Protocol: protocols[world.WholeState]}, world.Client{})
		s.ask(session.Request{Mode: world.WholeState, Replace: true, Wildcard: session.WildcardOn, Names: []string{"gone"}})
		s.ask(session.Request{Mode: world.WholeState, Replace: true})
		p.Publish(w.unlisted([]*note{{0, "here", "1", nil}}))
		wants(t, "before everything is listed", s.receiveAll(e), "listener here 1")
		p.Publish(w.step(nil))
		wants(t, "once everything is listed", s.receiveAll(e))
		s.ask(session.Request{Mode: world.WholeState, Replace: true, Names: []string{"gone"}})
		wants(t, "when it is named again", s.receiveAll(e), "listener gone empty", "listener here 1")
	})
}
