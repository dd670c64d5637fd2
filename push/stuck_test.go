package push

import (
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// countedWorld counts how often something is looked up.
type countedWorld struct {
	fakeWorld
	finds *atomic.Int64
}

func (w countedWorld) Find(v world.View, t world.Row, name string) (world.Subject, bool) {
	w.finds.Add(1)
	return w.fakeWorld.Find(v, t, name)
}

// cost is what an engine did for a number of changes.
type cost struct {
	finds, encoded int64
	responses      uint64
	mallocs        uint64
}

// costOf lets a reader follow many changes of one resource, while so many other
// clients of the same resource are stuck, and returns what that cost.
func costOf(t *testing.T, changes, stuck int, connect func(*Engine) *Subscriber, check func(ClientStatus)) (c cost) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{Workers: 1, Patience: time.Second})
		finds, encoded := &atomic.Int64{}, &atomic.Int64{}
		w := many(10)
		change := func(i int) {
			name := nameAt(3)
			w = w.with(parts, name, strconv.Itoa(i)).with(wholes, name, strconv.Itoa(i))
			w[parts][name].encoded, w[wholes][name].encoded = encoded, encoded
			e.producers[0].Publish(world.Update{World: countedWorld{w, finds}, Changed: []world.Changed{{Row: parts, Name: name}, {Row: wholes, Name: name}}})
		}
		change(-1)
		<-e.Primed()
		for range stuck {
			connect(e)
		}
		reader := connected(e, world.Delta, parts, namesOf(10)...)
		reader.ack(reader.receive())
		follow := func(i int) {
			change(i)
			r := reader.receive()
			reader.ack(r)
			if got := contentsOf(r); len(got) != 1 || got[0] != strconv.Itoa(i) {
				t.Fatalf("the reader got %v of change %d", got, i)
			}
			time.Sleep(time.Minute)
		}
		follow(0)
		finds.Store(0)
		encoded.Store(0)
		var before, after runtime.MemStats
		counts := e.Counts()
		runtime.ReadMemStats(&before)
		for i := range changes {
			follow(i + 1)
		}
		runtime.ReadMemStats(&after)
		for t, count := range e.Counts() {
			c.responses += count.Responses - counts[t].Responses
		}
		c.finds, c.encoded, c.mallocs = finds.Load(), encoded.Load(), after.Mallocs-before.Mallocs
		for _, client := range e.Clients() {
			if client.ID == "stuck" {
				check(client)
			}
		}
	})
	return c
}

// A client that never takes its response off our hands is shown as waiting since
// then, and nothing is looked up, encoded or assembled for it, or takes a
// worker's time, however much changes.
func TestClientThatNeverReadsCostsNothing(t *testing.T) {
	const changes, stuck = 200, 50
	for name, connect := range map[string]func(*Engine) *Subscriber{
		"names": func(e *Engine) *Subscriber {
			return stuckWith(e, world.Delta, session.Request{Type: parts, Subscribe: namesOf(10)})
		},
		"everything": func(e *Engine) *Subscriber {
			return stuckWith(e, world.Delta, session.Request{Type: parts, Mode: world.Delta, Wildcard: session.WildcardOn})
		},
		"full sets": func(e *Engine) *Subscriber {
			return stuckWith(e, world.WholeState, session.Request{Type: wholes, Replace: true, Wildcard: session.WildcardOn})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var shown time.Duration
			without := costOf(t, changes, 0, connect, nil)
			with := costOf(t, changes, stuck, connect, func(c ClientStatus) {
				shown = time.Since(c.Types[0].Since)
				if n := c.Types[0].Pending; n != 1 {
					t.Errorf("%d changes are shown as pending", n)
				}
				if c.Types[0].State != session.Waiting || c.Types[0].Reason != "the client does not read: the response is not on the wire yet" {
					t.Errorf("the client is shown as %s because %s", c.Types[0].State, c.Types[0].Reason)
				}
			})
			if shown != (changes+1)*time.Minute {
				t.Errorf("it is shown to be so for %v", shown)
			}
			if with.responses != without.responses || with.encoded != without.encoded {
				t.Errorf("%+v, and %+v with stuck clients", without, with)
			}
			// The dispatcher compares what a name stood for and stands for, once for all of a type.
			if looked := with.finds - without.finds; looked > 2*changes {
				t.Errorf("%d look-ups", looked)
			}
			if extra := int64(with.mallocs) - int64(without.mallocs); extra > changes*stuck/10 {
				t.Errorf("%d allocations for %d changes of %d clients", extra, changes, stuck)
			}
		})
	}
}

func stuckWith(e *Engine, m world.Mode, r session.Request) *Subscriber {
	s := e.Connect(Info{ID: "stuck"}, world.Client{Kind: "test"})
	r.Mode = m
	s.ask(r)
	synctest.Wait()
	return s
}

// A client that reads and never answers is sent the newest when patience ends,
// not each change, and is shown as waiting since the first it did not answer.
func TestClientThatNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const seconds, patience = 1000, 10
		e := run(t, Config{Patience: patience * time.Second})
		w := many(1)
		e.publish(w, parts)
		<-e.Primed()
		start := time.Now()
		s := connected(e, world.Delta, parts, nameAt(0))
		var newest *session.Response
		responses := 0
		take := func(want string) {
			if len(s.Out()) == 0 {
				return
			}
			newest = s.receive()
			if responses++; contentsOf(newest)[0] != want {
				t.Errorf("got %v, and the newest is %s", contentsOf(newest), want)
			}
		}
		synctest.Wait()
		take("first content of " + nameAt(0))
		for i := range seconds {
			w = w.with(parts, nameAt(0), strconv.Itoa(i))
			e.publish(w, parts, nameAt(0))
			time.Sleep(time.Second)
			synctest.Wait()
			take(strconv.Itoa(i))
		}
		if want := 1 + seconds/patience; responses > want || responses < want-1 {
			t.Errorf("%d responses, want one in %d seconds", responses, patience)
		}
		status := s.status().Types[0]
		if status.State != session.Waiting || !status.Since.Equal(start) {
			t.Errorf("the client is shown as %s for %v", status.State, time.Since(status.Since))
		}
		s.ack(newest)
		synctest.Wait()
		s.ack(newest)
		if status := s.status().Types[0]; status.State != session.ACKed {
			t.Errorf("the client is shown as %s", status.State)
		}
		s.Close()
	})
}

// What a client holds, as its responses say.
type possession map[string]string

func (h possession) take(r *session.Response) {
	for _, res := range r.Resources {
		h[res.Name] = string(res.Body)
	}
	for _, name := range r.Removed {
		delete(h, name)
	}
}

// Names come and go, and a client to which all of them matter never reads, or
// never answers. What is remembered for it has a bound, and when it is back it
// gets exactly what there is.
func TestStuckWildcardIsBounded(t *testing.T) {
	const names, stay = 20_000, 10
	for _, reads := range []bool{false, true} {
		t.Run(fmt.Sprint("reads ", reads), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := run(t, Config{Patience: time.Second})
				w := many(stay)
				e.publish(w, parts)
				<-e.Primed()
				s := e.Connect(Info{}, world.Client{})
				s.ask(session.Request{Type: parts, Mode: world.Delta, Wildcard: session.WildcardOn})
				synctest.Wait()
				holds := possession{}
				take := func() (r *session.Response) {
					r = s.receive()
					holds.take(r)
					return r
				}
				var newest *session.Response
				if reads {
					newest = take()
				}
				most := 0
				for i := range names {
					name := fmt.Sprint("passing ", i)
					next := w.with(parts, name, "here")
					e.publish(next, parts, name)
					if reads && i%2 == 0 {
						time.Sleep(2 * time.Second)
						newest = take()
					}
					synctest.Wait()
					e.publish(w, parts, name)
					synctest.Wait()
					s.mu.Lock()
					i := s.types[parts]
					c := i.state.Counts()
					most = max(most, c.Pending+len(i.marks.names)+c.Held+c.Lacking+c.Removed+c.InFlight)
					s.mu.Unlock()
				}
				if limit := 3 * tooMany; most > limit {
					t.Errorf("%d things are remembered", most)
				}
				if !reads {
					newest = take()
				}
				s.ack(newest)
				for synctest.Wait(); len(s.Out()) > 0; synctest.Wait() {
					s.ack(take())
				}
				if len(holds) != stay {
					t.Errorf("the client holds %d resources, want %d", len(holds), stay)
				}
			})
		})
	}
}
