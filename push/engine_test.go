package push

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// nothingComes fails if the subscriber is sent anything now.
func nothingComes(t *testing.T, s *Subscriber) {
	t.Helper()
	synctest.Wait()
	select {
	case r, ok := <-s.Out():
		t.Fatalf("got %v, open %t", contentsOf(r), ok)
	default:
	}
}

func TestNothingBeforeTheFirstWorld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{})
		s := connected(e, world.Delta, parts, "a")
		nothingComes(t, s)
		e.publish(fakeWorld{}.with(parts, "a", "0"), parts)
		if got := contentsOf(s.receive()); !slices.Equal(got, []string{"0"}) {
			t.Errorf("got %v", got)
		}
	})
}

// A response that is not answered stops the next until patience ends, which
// counts from when the transport has taken it.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{Patience: time.Minute})
		e.publish(fakeWorld{}.with(parts, "a", "0"), parts)
		<-e.Primed()
		s := connected(e, world.Delta, parts, "a")
		first := <-s.Out()
		e.publish(fakeWorld{}.with(parts, "a", "1"), parts, "a")
		time.Sleep(time.Hour)
		nothingComes(t, s) // the transport has not taken the first
		s.Sent(first)
		time.Sleep(time.Minute - 1)
		nothingComes(t, s)
		start := time.Now()
		second := s.receive()
		if late := time.Since(start); late != 1 || contentsOf(second)[0] != "1" {
			t.Errorf("%v came %v later", contentsOf(second), late)
		}
		if standing := s.status().Types[0].State; standing != session.Waiting {
			t.Errorf("the client is shown as %s", standing)
		}
		s.ack(second)
		if standing := s.status().Types[0].State; standing != session.ACKed {
			t.Errorf("the client is shown as %s", standing)
		}
		time.Sleep(time.Hour)
		nothingComes(t, s)
	})
}

// An engine remembers a bounded number of responses that are not answered.
func TestUnansweredResponsesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{Patience: time.Second})
		w := many(100)
		e.publish(w, parts)
		<-e.Primed()
		s := connected(e, world.Delta, parts, namesOf(100)...)
		s.receive()
		for i := range 100 {
			w = w.with(parts, nameAt(i), "second")
			e.publish(w, parts, nameAt(i))
			s.receive()
		}
		if n := s.types[parts].state.Counts().InFlight; n > session.MaxInFlight {
			t.Errorf("%d responses are remembered", n)
		}
	})
}

// However late a response is NACKed, the names that it brought are tried again, and
// no others.
func TestNACKOfTheOldestResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{Patience: time.Second})
		const responses = session.MaxInFlight + 3
		w := many(responses)
		e.publish(w, parts)
		<-e.Primed()
		s := connected(e, world.Delta, parts, namesOf(responses)...)
		s.ack(s.receive())
		var sent []*session.Response
		for i := range responses {
			w = w.with(parts, nameAt(i), "second of "+strconv.Itoa(i))
			e.publish(w, parts, nameAt(i))
			sent = append(sent, s.receive())
		}
		s.nack(sent[0])
		if n := s.status().Types[0].NACKs; n != 1 {
			t.Errorf("%d NACKs were counted", n)
		}
		s.ack(sent[responses-1])
		if got := contentsOf(s.receive()); !slices.Equal(got, []string{"second of 0"}) {
			t.Errorf("got %v again", got)
		}
	})
}

// Resources that were NACKed together are tried again in ever smaller groups, so that
// a bad one is soon alone and keeps no good ones back.
func TestBadResourceIsSingledOut(t *testing.T) {
	const resources, changes = 64, 20
	bad := nameAt(13)
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{})
		w := many(resources)
		e.publish(w, parts)
		<-e.Primed()
		s := connected(e, world.Delta, parts, namesOf(resources)...)
		taken := map[string]string{}
		sent, fixed := 0, false
		settle := func() {
			for synctest.Wait(); len(s.Out()) > 0; synctest.Wait() {
				r := s.receive()
				sent += len(r.Resources)
				if !fixed && slices.ContainsFunc(r.Resources, func(res *world.Resource) bool { return res.Name == bad }) {
					s.nack(r)
					continue
				}
				for _, res := range r.Resources {
					taken[res.Name] = string(res.Body)
				}
				s.ack(r)
			}
		}
		settle()
		for i := range changes {
			name := nameAt(20 + i)
			w = w.with(parts, name, "second")
			e.publish(w, parts, name)
			settle()
			if taken[name] != "second" {
				t.Errorf("%s changed and did not get past the bad one", name)
			}
		}
		if limit := 3*resources + changes; sent > limit {
			t.Errorf("%d resources were sent, want at most %d", sent, limit)
		}
		fixed = true
		e.publish(w.with(parts, bad, "fixed"), parts, bad)
		settle()
		if len(taken) != resources {
			t.Errorf("the client has %d resources, want %d", len(taken), resources)
		}
	})
}

// A step is seen whole: resources that change together go out in the order of types,
// however the changes are listed.
func TestStepIsSeenWhole(t *testing.T) {
	for i := range 50 {
		e := run(t, Config{Workers: 4})
		w := many(20)
		e.publish(w, parts)
		<-e.Primed()
		s := connected(e, world.Delta, wholes, namesOf(20)...)
		s.ask(session.Request{Type: parts, Subscribe: namesOf(20)})
		s.ack(s.receive())
		s.ack(s.receive())
		u := world.Update{}
		for _, name := range namesOf(20) {
			w = w.with(wholes, name, "second").with(parts, name, "second")
			u.Changed = append(u.Changed, world.Changed{Row: parts, Name: name}, world.Changed{Row: wholes, Name: name})
		}
		u.World = w
		e.producers[0].Publish(u)
		for _, want := range []world.Type{wholes, parts} {
			if r := s.receive(); r.Type != want || len(r.Resources) != 20 {
				t.Fatalf("round %d: %d resources of type %d, want all of type %d", i, len(r.Resources), r.Type, want)
			}
		}
	}
}

// Every subscriber gets the same bytes, which are made once.
func TestEncodedOnce(t *testing.T) {
	e := run(t, Config{})
	var encoded atomic.Int64
	w := fakeWorld{parts: {"a": {t: parts, name: "a", content: "0", encoded: &encoded}}}
	e.publish(w, parts)
	<-e.Primed()
	var first *world.Resource
	for range 50 {
		r := connected(e, world.Delta, parts, "a").receive()
		if first == nil {
			first = r.Resources[0]
		}
		if r.Resources[0] != first {
			t.Error("a subscriber was given a resource of its own")
		}
	}
	if n := encoded.Load(); n != 1 {
		t.Errorf("encoded %d times", n)
	}
}

// A resource that many workers need at the same time is encoded by the first, and the
// others wait for its bytes.
func TestEncodedOnceByWorkersInParallel(t *testing.T) {
	const workers = 8
	e := run(t, Config{Workers: workers})
	var encoded atomic.Int64
	begun, release := make(chan struct{}), make(chan struct{})
	subject := &fakeSubject{t: parts, name: "a", content: "0", encoded: &encoded, encode: func(string) {
		if encoded.Load() == 1 {
			close(begun)
			<-release
		}
	}}
	e.publish(fakeWorld{parts: {"a": subject}}, parts)
	<-e.Primed()
	subs := make([]*Subscriber, 6*workers)
	for i := range subs {
		subs[i] = connected(e, world.Delta, parts, "a")
	}
	<-begun
	for range 100 { // the other workers reach the resource meanwhile, or come later
		runtime.Gosched()
	}
	close(release)
	first := subs[0].receive().Resources[0]
	for _, s := range subs[1:] {
		if s.receive().Resources[0] != first {
			t.Error("a subscriber was given a resource of its own")
		}
	}
	if n := encoded.Load(); n != 1 {
		t.Errorf("encoded %d times", n)
	}
}

// Point 8 of the checklist: a subscriber that leaves is forgotten.
func TestCloseLeavesNothing(t *testing.T) {
	e := run(t, Config{})
	e.publish(many(5), parts)
	<-e.Primed()
	var list []*Subscriber
	for range 10 {
		s := connected(e, world.Delta, parts, namesOf(5)...)
		s.ask(session.Request{Type: wholes, Wildcard: session.WildcardOn})
		s.receive()
		s.receive()
		list = append(list, s)
	}
	for _, s := range list {
		s.Close()
		s.ask(session.Request{Type: parts, Subscribe: []string{"late"}})
	}
	left := e.index.Len()
	if left != 0 || e.Len() != 0 || e.holdings.total != 0 {
		t.Errorf("%d entries, %d subscribers and %d bytes of budgets are left", left, e.Len(), e.holdings.total)
	}
}

// Changes that wait for a slow dispatcher are joined by name, never coarsened.
func TestInboxJoinsByName(t *testing.T) {
	b := newInbox()
	b.put(world.Update{World: many(1), Changed: []world.Changed{{Row: parts, Name: "a", Audience: []string{"x"}, Urgent: true}, {Row: parts, Name: "b", Audience: []string{"x"}}}})
	b.put(world.Update{World: many(2), Changed: []world.Changed{{Row: parts, Name: "a", Audience: []string{"y"}}, {Row: wholes, Name: "b"}}})
	b.put(world.Update{World: many(3), Changed: []world.Changed{{Row: wholes, Name: "b", Audience: []string{"y"}}}})
	u, ok := b.take()
	if !u.Changed[0].Urgent || u.Changed[1].Urgent || u.Changed[2].Urgent {
		t.Errorf("the one that was urgent once is not first of %v", u.Changed)
	}
	var got []string
	for _, c := range u.Changed {
		slices.Sort(c.Audience)
		got = append(got, fmt.Sprintf("%d %s %v %t", c.Row, c.Name, c.Audience, c.Audience == nil))
	}
	slices.Sort(got)
	want := []string{"0 b [] true", "1 a [x y] false", "1 b [x] false"}
	if world := u.World.(fakeWorld); !ok || len(world[parts]) != 3 || !slices.Equal(got, want) {
		t.Errorf("got %q of a world of %d", got, len(world[parts]))
	}
	if _, again := b.take(); again {
		t.Error("the same step was there twice")
	}
}
