package push

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// An urgent removal waits for no change that may take its place: until it comes, clients
// go astray.
func TestUrgentRemovalWaitsForNoReplacement(t *testing.T) {
	for mode := range world.Modes {
		synctest.Test(t, func(t *testing.T) {
			var p *Producer
			wait := [world.Modes]world.Debounce{world.Delta: {Quiet: time.Second}, world.WholeState: {Quiet: time.Second}}
			e := start(t, Config{}, func(e *Engine) {
				p = e.Produce([]world.TypeSpec{{Name: "listener", NameDebounces: []world.NameDebounce{
					{Match: func(name string) bool { return name == "shared" }, Debounce: wait, DelayRemovals: true},
				}, Empty: emptyNote, Absent: removedOrEmpty}})
			})
			w := newNotes(1)
			p.Publish(w.step([]*note{{0, "a", "1", nil}, {0, "b", "1", nil}, {0, "shared", "1", nil}}))
			s := e.Connect(Info{Protocol: protocols[mode]}, world.Client{})
			if mode == world.Delta {
				s.ask(session.Request{Type: p.Type(0), Subscribe: []string{"a", "b", "shared"}})
			} else {
				s.ask(session.Request{Type: p.Type(0), Replace: true, Names: []string{"a", "b", "shared"}})
			}
			s.receiveAll(e)
			u := w.step([]*note{{0, "shared", "2", nil}}, noteSlot{0, "a"}, noteSlot{0, "b"})
			for n := range u.Changed {
				u.Changed[n].Urgent = u.Changed[n].Name == "a"
			}
			p.Publish(u)
			gone := [world.Modes][2]string{world.WholeState: {"listener a empty", "listener b empty"}, world.Delta: {"listener -a", "listener -b"}}[mode]
			wants(t, "at once", s.receiveAll(e), gone[0])
			time.Sleep(time.Second)
			got := s.receiveAll(e)
			if mode == world.Delta {
				wants(t, "with what replaces it", got, "listener shared 2", gone[1])
			} else {
				wants(t, "with what replaces it", got, gone[1], "listener shared 2")
			}
		})
	}
}

func emptyNote(name string) world.Encoded { return (&note{name: name, content: "empty"}).Encode() }

func removedOrEmpty(_ string, m world.Mode) world.Absence {
	if m == world.Delta {
		return world.Removal
	}
	return world.Empty
}

// tally is a subject that is sent as what differs from the revision that is held.
type tally struct{ note }

type tallySince struct {
	*tally
	from world.Version
}

func (s *tally) Revision() world.Version { return world.VersionOf([]byte(s.content)) }

func (s *tally) Since(held world.Version) world.Subject { return tallySince{s, held} }

func (s tallySince) Slot() any {
	return [2]any{s.tally.Slot(), s.from}
}

// Encode says what the increment begins with.
func (s tallySince) Encode() world.Encoded {
	body := s.content
	if s.from != (world.Version{}) {
		body += " since " + s.from.String()
	}
	return world.Encoded{Name: s.name, Version: s.Revision(), Body: []byte(body)}
}

// tallies is a world of one.
type tallies struct {
	notes
	only *tally
}

func (w tallies) Find(_ world.View, _ world.Row, name string) (world.Subject, bool) {
	return w.only, name == w.only.name
}

// An increment begins with what the subscriber has ACKed. While that is not known, it is
// sent the whole: after a response that is overdue, and after a NACK.
func TestIncrementBeginsWithWhatWasACKed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{Patience: time.Second}, func(e *Engine) { p = e.Produce([]world.TypeSpec{{Name: "tally", Increments: true}}) })
		publish := func(content string) {
			w := newNotes(1)
			p.Publish(world.Update{World: tallies{*w, &tally{note{0, "t", content, nil}}}, Changed: []world.Changed{{Row: 0, Name: "t"}}})
		}
		since := func(now, before string) string { return now + " since " + world.VersionOf([]byte(before)).String() }
		publish("1")
		s := e.Connect(Info{Protocol: protocols[world.Delta]}, world.Client{})
		s.ask(session.Request{Type: p.Type(0), Subscribe: []string{"t"}})
		var last *session.Response
		next := func(what, want string) {
			t.Helper()
			synctest.Wait()
			if len(s.Out()) == 0 {
				t.Fatalf("%s: nothing comes", what)
			}
			last = s.receive()
			wants(t, what, contentsOf(last), want)
		}
		next("at first", "1")
		s.ack(last)
		publish("2")
		next("after an ACK", since("2", "1"))
		unanswered := last
		publish("3")
		time.Sleep(2 * time.Second)
		next("once an answer is overdue", "3")
		publish("4")
		time.Sleep(2 * time.Second)
		next("once the next is overdue, too", "4")
		s.ack(unanswered)
		publish("5")
		time.Sleep(2 * time.Second)
		next("after a late ACK of one before", "5")
		s.ack(last)
		publish("6")
		next("after the ACK of the newest", since("6", "5"))
		s.nack(last)
		synctest.Wait()
		publish("7")
		next("after a NACK", "7")
		s.ack(last)
		publish("8")
		next("after an ACK again", since("8", "7"))
	})
}

// A removal waits for the answer of what referred to the resource until patience ends, and
// no longer, also where more of that type has been sent since.
func TestOverdueResponseFreesRemovals(t *testing.T) {
	for _, more := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const patience = 10 * time.Second
			var p *Producer
			e := start(t, Config{Patience: patience}, func(e *Engine) { p = e.Produce(references()) })
			w := newNotes(5)
			p.Publish(w.step([]*note{{clusters, "old", "1", nil}, {clusters, "new", "1", nil}, {routes, "r", "1", to("cluster", "old")}}))
			s := deltaClient(e, world.Client{}, clusters, routes)
			s.receiveAll(e)
			p.Publish(w.step([]*note{{routes, "r", "2", to("cluster", "new")}}, noteSlot{clusters, "old"}))
			synctest.Wait()
			wants(t, "what refers to another now", contentsOf(s.receive()), "2") // is not answered
			if more {
				p.Publish(w.step([]*note{{routes, "r", "3", to("cluster", "new")}}))
			}
			time.Sleep(patience - 1)
			synctest.Wait()
			if len(s.Out()) > 0 {
				t.Fatalf("%v came while patience lasts", s.receive())
			}
			time.Sleep(time.Nanosecond)
			var removed []string
			for synctest.Wait(); len(s.Out()) > 0; synctest.Wait() {
				removed = append(removed, s.receive().Removed...) // nor is anything else
			}
			wants(t, "once it has ended", removed, "old")
			p.Publish(w.step(nil, noteSlot{clusters, "new"}))
			time.Sleep(10 * patience)
			for synctest.Wait(); len(s.Out()) > 0; synctest.Wait() {
				removed = append(removed, s.receive().Removed...)
				time.Sleep(10 * patience)
			}
			wants(t, "what went later", removed, "old", "new")
		})
	}
}

// What needs a resource waits for its answer until patience ends, and no longer.
func TestOverdueResponseFreesWhatNeedsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = 10 * time.Second
		var p *Producer
		e := start(t, Config{Patience: patience}, func(e *Engine) { p = e.Produce(references()) })
		w := newNotes(5)
		p.Publish(w.step([]*note{{clusters, "c", "1", nil}}))
		s := deltaClient(e, world.Client{}, clusters, routes)
		s.receiveAll(e)
		p.Publish(w.step([]*note{{clusters, "c", "2", nil}, {routes, "r", "1", to("cluster", "c")}}))
		synctest.Wait()
		wants(t, "what is needed", contentsOf(s.receive()), "2") // is not answered
		time.Sleep(patience - 1)
		wants(t, "while patience lasts", s.receiveAll(e))
		time.Sleep(time.Nanosecond)
		wants(t, "once it has ended", s.receiveAll(e), "route r 1")
	})
}

// A removal waits for no resource that its client ceased to ask for.
func TestRemovalWaitsForNothingThatWasDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{Patience: time.Hour}, func(e *Engine) { p = e.Produce(references()) })
		w := newNotes(5)
		p.Publish(w.step([]*note{{clusters, "old", "1", nil}, {clusters, "new", "1", nil}, {routes, "r", "1", to("cluster", "old")}}))
		s := deltaClient(e, world.Client{}, clusters)
		s.ask(session.Request{Type: routes, Subscribe: []string{"r"}})
		s.receiveAll(e)
		p.Publish(w.step([]*note{{clusters, "new", "2", nil}, {routes, "r", "2", to("cluster", "new")}}, noteSlot{clusters, "old"}))
		synctest.Wait()
		last := s.receive() // of the new cluster
		wants(t, "what is needed", contentsOf(last), "2")
		s.ask(session.Request{Type: routes, Unsubscribe: []string{"r"}})
		s.ack(last)
		wants(t, "once it was answered", s.receiveAll(e), "cluster -old")
	})
}

// What needs a resource that waits for an answer itself goes once that resource is gone, or
// its client ceased to ask for it.
func TestNothingWaitsForWhatIsGone(t *testing.T) {
	for _, dropped := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var p *Producer
			e := start(t, Config{Patience: time.Hour}, func(e *Engine) { p = e.Produce(references()) })
			w := newNotes(5)
			p.Publish(w.step([]*note{{clusters, "a", "1", nil}, {clusters, "b", "1", nil}, {secrets, "s", "1", nil}}))
			s := e.Connect(Info{Protocol: protocols[world.Delta]}, world.Client{})
			s.ask(session.Request{Type: clusters, Subscribe: []string{"a", "b"}})
			s.ask(session.Request{Type: secrets, Wildcard: session.WildcardOn})
			s.ask(session.Request{Type: routes, Wildcard: session.WildcardOn})
			s.receiveAll(e)
			p.Publish(w.step([]*note{{clusters, "a", "2", nil}}))
			synctest.Wait()
			wants(t, "what is not answered", contentsOf(s.receive()), "2")
			p.Publish(w.step([]*note{{clusters, "b", "2", nil}, {routes, "r", "1", to("cluster", "b")}}))
			wants(t, "while the next waits for that", s.receiveAll(e))
			if dropped {
				s.ask(session.Request{Type: clusters, Unsubscribe: []string{"b"}})
				wants(t, "once it is not asked for", s.receiveAll(e), "route r 1")
				return
			}
			p.Publish(w.step([]*note{{secrets, "s", "2", nil}}, noteSlot{clusters, "b"}))
			wants(t, "once it is gone", s.receiveAll(e), "route r 1", "secret s 2")
		})
	}
}
