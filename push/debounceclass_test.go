package push

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// A removal waits for changes of referring types that a debounce keeps back: else
// clients would be left with references to what is gone. A client that none of
// these changes concerns gets the removal as well.
func TestRemovalWaitsForWhatADebounceKeepsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		slow := [world.Modes]world.Debounce{world.Delta: {Quiet: time.Second}}
		e := start(t, Config{}, func(e *Engine) {
			p = e.Produce([]world.TypeSpec{{Name: "cluster"}, {Name: "route", Needs: []string{"cluster"}, Debounce: slow}})
		})
		w := newNotes(2)
		to := map[string][]string{"cluster": {"a"}}
		p.Publish(w.step([]*note{{0, "a", "1", nil}, {1, "a", "1", to}}))
		led := deltaClient(e, world.Client{}, p.Type(0), p.Type(1))
		wants(t, "the first", led.receiveAll(e), "cluster a 1", "route a 1")
		other := deltaClient(e, world.Client{}, p.Type(0))
		other.ask(session.Request{Type: p.Type(1), Subscribe: []string{"b"}})
		wants(t, "the other", other.receiveAll(e), "cluster a 1", "route -b")

		p.Publish(w.step(nil, noteSlot{0, "a"}, noteSlot{1, "a"}))
		wants(t, "at once", led.receiveAll(e))
		wants(t, "the other at once", other.receiveAll(e))
		time.Sleep(time.Second)
		wants(t, "after the debounce", led.receiveAll(e), "route -a", "cluster -a")
		wants(t, "the other after it", other.receiveAll(e), "cluster -a")
	})
}

// A resource that changes there and back during a debounce reaches the clients that
// were sent the state in between, because their view changed meanwhile.
func TestThereAndBackWithinADebounce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		slow := [world.Modes]world.Debounce{world.Delta: {Quiet: time.Second}}
		e := start(t, Config{}, func(e *Engine) { p = e.Produce([]world.TypeSpec{{Name: "cluster", Debounce: slow}}) })
		w := newNotes(1)
		a := &note{0, "a", "1", nil}
		p.Publish(w.step([]*note{a, {0, "b", "1", nil}}))
		s := deltaClient(e, world.Client{}, p.Type(0))
		if got := s.receiveAll(e); len(got) != 2 {
			t.Fatalf("at first: %q", got)
		}
		w.view = func(world.Client) world.View { return "another" }
		u := w.step(nil, noteSlot{0, "a"})
		u.Reviewed = []string{"*"}
		p.Publish(u)
		wants(t, "with another view", s.receiveAll(e), "cluster -a")
		p.Publish(w.step([]*note{a}))
		time.Sleep(time.Second)
		wants(t, "when it is back", s.receiveAll(e), "cluster a 1")
	})
}

// Resources with a debounce of their own wait by themselves: neither they nor the rest of their type
// wait for each other. A removal waits for both.
func TestResourcesWithTheirOwnDebounceWaitByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{}, func(e *Engine) {
			p = e.Produce([]world.TypeSpec{{Name: "cluster"}, {
				Name: "listener", Needs: []string{"cluster"}, Debounce: [world.Modes]world.Debounce{world.Delta: {Quiet: time.Second}},
				NameDebounces: []world.NameDebounce{
					{
						Match:    func(name string) bool { return name == "slow" },
						Debounce: [world.Modes]world.Debounce{world.Delta: {Quiet: 3 * time.Second}, world.WholeState: {Quiet: time.Second}},
					},
					{Match: func(name string) bool { return name == "fast" || name == "slow" }},
				},
			}})
		})
		w := newNotes(2)
		p.Publish(w.step([]*note{{0, "a", "1", nil}, {1, "slow", "1", nil}, {1, "usual", "1", nil}}))
		s := deltaClient(e, world.Client{}, p.Type(0), p.Type(1))
		if got := s.receiveAll(e); len(got) != 3 {
			t.Fatalf("at first: %q", got)
		}
		p.Publish(w.step([]*note{{1, "slow", "2", nil}}))
		time.Sleep(2 * time.Second)
		p.Publish(w.step([]*note{{1, "usual", "2", nil}}, noteSlot{0, "a"}))
		wants(t, "at once", s.receiveAll(e))
		time.Sleep(time.Second)
		// The resource with its own debounce is due as well: the other change does not delay it.
		// The order of the two does not matter.
		both := s.receiveAll(e)
		slices.Sort(both[:min(2, len(both))])
		wants(t, "after both", both, "listener slow 2", "listener usual 2", "cluster -a")
		p.Publish(w.step([]*note{{1, "slow", "3", nil}, {1, "usual", "3", nil}}))
		time.Sleep(time.Second)
		wants(t, "the usual one", s.receiveAll(e), "listener usual 3")
		time.Sleep(2 * time.Second)
		wants(t, "the resource with its own debounce", s.receiveAll(e), "listener slow 3")
		p.Publish(w.step([]*note{{1, "slow", "4", nil}, {1, "usual", "4", nil}, {1, "fast", "1", nil}}))
		wants(t, "what waits for nothing", s.receiveAll(e), "listener fast 1")
	})
}

// A removal waits for a change that may take its place, if both come at once.
func TestRemovalWaitsForWhatReplacesIt(t *testing.T) {
	for mode, want := range [world.Modes][4][]string{
		world.Delta: {{"listener b 2"}, {"listener shared 2", "listener -a"}, {"listener -c"}, {"listener names 2"}},
		world.WholeState: {
			{"listener a 1", "listener b 2", "listener c 1", "listener names 1", "listener shared 1"},
			{"listener b 2", "listener c 1", "listener names 1", "listener shared 2"},
			{"listener b 2", "listener names 1", "listener shared 2"},
			{"listener b 2", "listener names 2", "listener shared 2"},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var p *Producer
			wait := [world.Modes]world.Debounce{world.Delta: {Quiet: time.Second}, world.WholeState: {Quiet: time.Second}}
			e := start(t, Config{}, func(e *Engine) {
				p = e.Produce([]world.TypeSpec{{Name: "listener", Whole: true, NameDebounces: []world.NameDebounce{
					{Match: func(name string) bool { return name == "names" }, Debounce: wait},
					{Match: func(name string) bool { return name == "shared" }, Debounce: wait, DelayRemovals: true},
				}}})
			})
			w := newNotes(1)
			p.Publish(w.step([]*note{{0, "a", "1", nil}, {0, "b", "1", nil}, {0, "c", "1", nil}, {0, "names", "1", nil}, {0, "shared", "1", nil}}))
			s := e.Connect(Info{Protocol: protocols[mode]}, world.Client{})
			s.ask(session.Request{Type: p.Type(0), Wildcard: session.WildcardOn})
			if got := s.receiveAll(e); len(got) != 5 {
				t.Fatalf("at first: %q", got)
			}
			p.Publish(w.step([]*note{{0, "shared", "2", nil}, {0, "b", "2", nil}}, noteSlot{0, "a"}))
			wants(t, "at once", s.receiveAll(e), want[0]...)
			time.Sleep(time.Second)
			wants(t, "after the debounce", s.receiveAll(e), want[1]...)
			p.Publish(w.step([]*note{{0, "names", "2", nil}}, noteSlot{0, "c"}))
			wants(t, "beside another change", s.receiveAll(e), want[2]...)
			time.Sleep(time.Second)
			wants(t, "after that", s.receiveAll(e), want[3]...)
		})
	}
}
