package push

import (
	"strconv"
	"sync"
	"testing"

	"github.com/isthmus-mesh/isthmus/push/index"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// BenchmarkPublish measures from the publication of one changed resource until
// every subscriber's stream has the response and has ACKed it.
func BenchmarkPublish(b *testing.B) {
	for _, subscribers := range []int{1, 500} {
		b.Run(strconv.Itoa(subscribers)+"-subscribers", func(b *testing.B) {
			e := run(b, Config{})
			w := many(1000)
			e.publish(w, parts)
			<-e.Primed()
			var got, all sync.WaitGroup
			all.Add(subscribers)
			for range subscribers {
				s := connected(e, world.Delta, parts, namesOf(10)...)
				s.ack(s.receive())
				all.Done()
				go func() {
					for r := range s.Out() {
						s.Sent(r)
						s.ack(r)
						got.Done()
					}
				}()
			}
			all.Wait()
			changed := [2]fakeWorld{w.with(parts, nameAt(3), "even"), w.with(parts, nameAt(3), "odd")}
			b.ReportAllocs()
			round := 0
			for b.Loop() {
				got.Add(subscribers)
				e.publish(changed[round%2], parts, nameAt(3))
				got.Wait()
				round++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(round*subscribers), "ns/subscriber")
		})
	}
}

// BenchmarkIndex finds the subscribers of one resource among 5,000 resources
// of 500 subscribers.
func BenchmarkIndex(b *testing.B) {
	const subscribers, names = 500, 5000
	for _, concerned := range []int{0, 1, subscribers} {
		b.Run(strconv.Itoa(concerned)+"-concerned", func(b *testing.B) {
			e := newEngine(Config{}, fakeTypes())
			all := namesOf(names)
			for n := range subscribers {
				s := e.Connect(Info{}, world.Client{Kind: "test", Namespace: strconv.Itoa(n % 20)})
				i := s.begin(parts, world.Delta)
				e.index.SetView(&i.Entry, world.View(n%20))
				e.index.Add(&i.Entry, func(yield func(string) bool) {
					for j, name := range all[1:] {
						if j%50 == n%50 && !yield(name) {
							return
						}
					}
				})
				if n < concerned {
					e.index.Add(&i.Entry, func(yield func(string) bool) { yield(all[0]) })
				}
			}
			found := 0
			b.ReportAllocs()
			for b.Loop() {
				found = 0
				e.index.Concerned(index.Target{Type: parts, Mode: world.Delta, Name: all[0]}, func(*index.Entry[*interest]) { found++ })
			}
			if found != concerned {
				b.Fatalf("found %d", found)
			}
		})
	}
}

// BenchmarkAssemble measures what a worker does for one subscriber of 5,000
// resources: from the mark to the response, and its ACK.
func BenchmarkAssemble(b *testing.B) {
	const names = 5000
	tests := []struct {
		name string
		mode world.Mode
		t    world.Row
		want int // resources in the response
	}{
		{"one-of-5000", world.Delta, parts, 1},
		{"full-state-of-5000", world.WholeState, wholes, names},
	}
	for _, test := range tests {
		b.Run(test.name, func(b *testing.B) {
			e := newEngine(Config{Turn: names}, fakeTypes())
			w := many(names)
			worlds := [2]world.World{w.with(test.t, nameAt(3), "even"), w.with(test.t, nameAt(3), "odd")}
			e.producers[0].world.Store(&worlds[1])
			s := connected(e, test.mode, world.Type(test.t), namesOf(names)...)
			(&worker{core: &e.core}).advance(s)
			first := s.receive()
			s.ask(session.Request{Type: world.Type(test.t), Answer: session.Answer{Kind: session.ACK, Serial: first.Serial}})
			b.ReportAllocs()
			round := 0
			for b.Loop() {
				e.producers[0].world.Store(&worlds[round%2])
				s.types[test.t].marks.add(nameAt(3), session.Pending{})
				(&worker{core: &e.core}).advance(s)
				r := s.receive()
				if len(r.Resources) != test.want {
					b.Fatalf("%d resources", len(r.Resources))
				}
				s.ack(r)
				round++
			}
			s.Close()
		})
	}
	b.Run("first-5000", func(b *testing.B) {
		e := newEngine(Config{}, fakeTypes())
		var w world.World = many(names)
		e.producers[0].world.Store(&w)
		all := namesOf(names)
		b.ReportAllocs()
		for b.Loop() {
			s := connected(e, world.WholeState, wholes, all...)
			(&worker{core: &e.core}).advance(s)
			if r := s.receive(); len(r.Resources) != names {
				b.Fatalf("%d resources", len(r.Resources))
			}
			s.Close()
		}
	})
}
