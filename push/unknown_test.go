package push

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// liveHeap is what is reachable, in bytes.
func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A name that stands for nothing costs its bytes and less than a hundred more,
// once it is answered, whatever size the maps it is in have grown to.
func TestUnknownNameIsCheap(t *testing.T) {
	for _, m := range []world.Mode{world.WholeState, world.Delta} {
		for _, n := range []int{10_000, 30_000, 57_000} {
			t.Run(fmt.Sprint(protocols[m], " ", n), func(t *testing.T) {
				e := run(t, Config{})
				e.publish(many(1), parts)
				<-e.Primed()
				names := make([]string, n)
				for i := range names {
					names[i] = fmt.Sprintf("outbound|80||nothing-%06d.example", i)
				}
				before := liveHeap()
				s := connected(e, m, parts, names...)
				waitFor(t, func() bool {
					select {
					case r := <-s.Out(): // removals, or the empty answer to a first request
						s.Sent(r)
						s.ack(r)
					default:
					}
					shown := s.status().Types[0]
					return shown.Pending == 0 && shown.State != session.Waiting
				})
				per := float64(liveHeap()-before) / float64(n)
				runtime.KeepAlive(names)
				t.Logf("%.0f B per name", per)
				if per >= 100 {
					t.Errorf("a name costs %.0f B, want less than 100", per)
				}
				s.Close()
			})
		}
	}
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	until.NoError(t, time.Millisecond, "it", func() error {
		if !ok() {
			return errors.New("not yet")
		}
		return nil
	})
}

// The names that a client may ask for are bounded in bytes, for itself and with all
// others. Bytes that it gives up can be taken again.
func TestNamesAreBudgeted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		name := func(i int) []string { return []string{nameAt(i)} }
		room := int64(len(nameAt(0))) + nameCost
		e := run(t, Config{Holdings: Holdings{Each: 2 * room, Total: 3 * room}})
		e.publish(many(9), parts)
		<-e.Primed()
		connect := func(budget string) *Subscriber { return e.Connect(Info{Budget: budget}, world.Client{}) }
		ask := func(s *Subscriber, r session.Request) error {
			r.Type, r.Mode = parts, world.Delta
			return s.Request(r)
		}
		a, sibling, b := connect("a"), connect("a"), connect("b")
		for i, s := range []*Subscriber{a, sibling} {
			if err := ask(s, session.Request{Subscribe: name(i)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := ask(sibling, session.Request{Subscribe: name(2)}); !errors.Is(err, ErrHoldings) {
			t.Errorf("the budget of one is exceeded: %v", err)
		}
		if err := ask(b, session.Request{Subscribe: name(0)}); err != nil {
			t.Errorf("another has no budget of its own: %v", err)
		}
		if err := ask(b, session.Request{Subscribe: name(1)}); !errors.Is(err, ErrHoldings) {
			t.Errorf("the budget of all is exceeded: %v", err)
		}
		sibling.Close()
		if err := ask(b, session.Request{Subscribe: name(1)}); err != nil {
			t.Errorf("what was given up is not to be had: %v", err)
		}
		if err := ask(b, session.Request{Unsubscribe: name(1), Subscribe: name(1)}); err != nil {
			t.Error(err)
		}
		if err := ask(a, session.Request{Subscribe: append(name(3), name(3)...)}); err != nil && !errors.Is(err, ErrHoldings) {
			t.Error(err)
		}
		a.Close()
		b.Close()
		if e.holdings.total != 0 || len(e.holdings.by) != 0 {
			t.Errorf("%d bytes are left of %v", e.holdings.total, e.holdings.by)
		}
	})
}
