package push

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// A subscriber that does not answer keeps no resource in memory that all others
// have left behind. Many revisions for many slow subscribers would be a lot.
func TestSlowSubscriberKeepsNoOldResource(t *testing.T) {
	e := run(t, Config{})
	w := many(3)
	e.publish(w, parts)
	<-e.Primed()
	slow, reader := connected(e, world.Delta, parts, nameAt(0), nameAt(1)), connected(e, world.Delta, parts, nameAt(0), nameAt(1))
	for _, s := range []*Subscriber{slow, reader} {
		s.ack(s.receive())
	}
	old := encodedAs(e, nameAt(0))
	e.publish(w.with(parts, nameAt(1), "newer"), parts, nameAt(1))
	slow.receive() // and does not answer
	reader.ack(reader.receive())
	e.publish(w.with(parts, nameAt(0), "newer"), parts, nameAt(0))
	reader.ack(reader.receive())
	waitFor(t, func() bool { runtime.GC(); return old.Value() == nil })
	if !slow.types[parts].state.Holds(nameAt(0), world.MemberOf(nameAt(0), world.VersionOf([]byte("first content of "+nameAt(0))))) {
		t.Error("the slow one is not taken to have the old one")
	}
}

// Each response is overdue when its own time is over, also if another was sent
// before and is not answered either.
func TestEachResponseHasItsOwnPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{Patience: 10 * time.Second})
		w := many(1)
		e.publish(w, parts)
		<-e.Primed()
		s := connected(e, world.Delta, parts, nameAt(0))
		s.Sent(s.receive())
		time.Sleep(4 * time.Second)
		s.ask(session.Request{Type: wholes, Mode: world.Delta, Subscribe: []string{nameAt(0)}})
		s.Sent(s.receive())
		for _, newer := range []struct {
			of   world.Row
			wait time.Duration // until the newest is sent all the same
		}{{parts, 6 * time.Second}, {wholes, 4 * time.Second}, {parts, 6 * time.Second}} {
			began := time.Now()
			w = w.with(newer.of, nameAt(0), began.String())
			e.publish(w, newer.of, nameAt(0))
			s.Sent(s.receive())
			if took := time.Since(began); took != newer.wait {
				t.Errorf("the newest of type %d was sent after %v, want %v", newer.of, took, newer.wait)
			}
		}
	})
}

// encodedAs is the newest encoded form of a name, without keeping it.
func encodedAs(e *Engine, name string) weak.Pointer[world.Resource] {
	subject, _ := (*e.producers[0].world.Load()).Find(nil, parts, name)
	return weak.Make(e.reader.Encoded(subject, name))
}
