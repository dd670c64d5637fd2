package push

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// cappedWorld is one in which whoever looks up without end has to sleep, so that a test
// gets its turn.
type cappedWorld struct {
	countedWorld
	most int64
}

func (w cappedWorld) Find(v world.View, t world.Row, name string) (world.Subject, bool) {
	if w.finds.Load() > w.most {
		time.Sleep(time.Hour)
	}
	return w.countedWorld.Find(v, t, name)
}

// Many more names than a turn looks at wait for something: for the ACK of what they
// need, for what was NACKed, or as removals for what refers to them. While the client
// does not answer, none of them is looked up, neither by itself nor when the client has
// turns for something else. Once it answers, all of them reach it.
func TestNamesThatWaitAreNotLookedAt(t *testing.T) {
	const names, turn, changes = 500, 16, 100
	for what, wait := range map[string]func(*Engine, *Subscriber, func(world.Row, fakeWorld, ...string)) (finish func() int){
		"for an ACK":                waitForACK,
		"for what was NACKed":       waitForNACK,
		"for the rest of a listing": waitForListing,
		"for what referred to them": waitForReferrers,
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := run(t, Config{Workers: 1, Turn: turn, Patience: 1000 * time.Hour})
				finds := &atomic.Int64{}
				publish := func(row world.Row, w fakeWorld, names ...string) {
					u := world.Update{World: cappedWorld{countedWorld{w, finds}, 1 << 16}}
					for _, name := range names {
						u.Changed = append(u.Changed, world.Changed{Row: row, Name: name})
					}
					e.producers[0].Publish(u)
				}
				w := many(names)
				w[wholes] = map[string]*fakeSubject{}
				publish(parts, w)
				<-e.Primed()
				s := e.Connect(Info{ID: "test", Protocol: protocols[world.Delta]}, world.Client{Kind: "test"})
				finish := wait(e, s, publish)
				synctest.Wait()
				finds.Store(0)
				time.Sleep(time.Hour)
				synctest.Wait()
				if n := finds.Load(); n > 0 {
					t.Fatalf("%d look-ups while nothing happens", n)
				}
				// The same stream has turns for a type on which nothing depends.
				s.ask(session.Request{Type: wholes, Subscribe: []string{"other"}})
				synctest.Wait()
				s.ack(s.receive())
				finds.Store(0)
				w = e.producers[0].current()
				for n := range changes {
					w = w.with(wholes, "other", strconv.Itoa(n))
					publish(wholes, w, "other")
					synctest.Wait()
					s.ack(s.receive())
				}
				synctest.Wait()
				if n := finds.Load(); n > 5*changes {
					t.Fatalf("%d look-ups for %d changes of a resource that nothing waits for", n, changes)
				}
				if n := finish(); n != names {
					t.Errorf("%d of %d names reached the client once it answered", n, names)
				}
				if n := finds.Load(); n > 30*names {
					t.Fatalf("%d look-ups for %d names", n, names)
				}
			})
		})
	}
}

// current is the world that was published last.
func (p *Producer) current() fakeWorld { return (*p.world.Load()).(cappedWorld).fakeWorld }

// follow ACKs whatever comes, and counts what it brings of a type.
func follow(s *Subscriber, t world.Type) (n int) {
	for synctest.Wait(); len(s.Out()) > 0; synctest.Wait() {
		r := s.receive()
		if r.Type == t {
			n += len(r.Resources) + len(r.Removed)
		}
		s.ack(r)
	}
	return n
}

// waitForACK has the client ask for everything and ACK nothing of the first type.
func waitForACK(_ *Engine, s *Subscriber, _ func(world.Row, fakeWorld, ...string)) func() int {
	s.ask(session.Request{Type: parts, Wildcard: session.WildcardOn})
	synctest.Wait()
	first := s.receive()
	s.ask(session.Request{Type: links, Wildcard: session.WildcardOn})
	follow(s, links) // that there is nothing yet
	return func() int {
		s.ack(first)
		return follow(s, links)
	}
}

// waitForListing does so for one who asks for all of it by name.
func waitForListing(_ *Engine, s *Subscriber, _ func(world.Row, fakeWorld, ...string)) func() int {
	s.ask(session.Request{Type: parts, Subscribe: namesOf(500)})
	synctest.Wait()
	first := s.receive()
	s.ask(session.Request{Type: links, Subscribe: namesOf(500)})
	return func() int {
		s.ack(first)
		return follow(s, links)
	}
}

// waitForNACK has the client NACK everything of the first type, until all of that was
// NACKed by itself. Then it changes, and is ACKed.
func waitForNACK(e *Engine, s *Subscriber, publish func(world.Row, fakeWorld, ...string)) func() int {
	s.ask(session.Request{Type: parts, Wildcard: session.WildcardOn})
	for synctest.Wait(); len(s.Out()) > 0; synctest.Wait() {
		s.nack(s.receive())
	}
	s.ask(session.Request{Type: links, Wildcard: session.WildcardOn})
	follow(s, links) // that there is nothing yet
	return func() int {
		w := e.producers[0].current()
		for _, name := range namesOf(500) {
			w = w.with(parts, name, "good")
		}
		publish(parts, w, namesOf(500)...)
		return follow(s, links)
	}
}

// waitForReferrers has everything go while the client has not ACKed a change of what
// refers to it.
func waitForReferrers(e *Engine, s *Subscriber, publish func(world.Row, fakeWorld, ...string)) func() int {
	s.ask(session.Request{Type: parts, Wildcard: session.WildcardOn})
	s.ask(session.Request{Type: links, Wildcard: session.WildcardOn})
	follow(s, parts)
	w := e.producers[0].current().with(links, nameAt(0), "changed")
	publish(links, w, nameAt(0))
	synctest.Wait()
	last := s.receive()
	w[parts] = map[string]*fakeSubject{}
	publish(parts, w, namesOf(500)...)
	synctest.Wait()
	return func() int {
		s.ack(last)
		return follow(s, parts)
	}
}

// A name that waits comes and goes. What is remembered of that has a bound, and for whom
// it waited does not matter once it is gone.
func TestNameThatWaitsAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rounds = 1000
		e := run(t, Config{Workers: 1, Patience: 1000 * time.Hour})
		w := many(1)
		e.publish(w, parts)
		<-e.Primed()
		s := connected(e, world.Delta, parts)
		s.ask(session.Request{Type: parts, Wildcard: session.WildcardOn})
		s.ask(session.Request{Type: links, Wildcard: session.WildcardOn})
		follow(s, parts)
		w = w.with(parts, nameAt(0), "not ACKed")
		e.publish(w, parts, nameAt(0))
		synctest.Wait()
		last := s.receive()
		for n := range rounds {
			name := nameAt(0)
			next := w.with(links, name, fmt.Sprint("content ", n))
			e.publish(next, links, name)
			synctest.Wait()
			e.publish(w, links, name)
			synctest.Wait()
		}
		s.mu.Lock()
		most := 0
		for i := range s.interests {
			most = max(most, i.state.Counts().Waiting)
		}
		s.mu.Unlock()
		if most > session.Few {
			t.Errorf("%d things are remembered of one name", most)
		}
		s.ack(last)
		if n := follow(s, links); n != 0 {
			t.Errorf("%d resources came anew, and all of them are as they were", n)
		}
		if n := s.status().Types[1].Pending; n != 0 {
			t.Errorf("%d names are shown as pending", n)
		}
	})
}
