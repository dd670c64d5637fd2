package push

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// Many subscribers are concerned by one step, and no more of them are worked for
// at the same time than there are workers.
func TestNoMoreAreAssembledThanThereAreWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers, n = 3, 20
		e := run(t, Config{Workers: workers})
		w := many(n)
		e.publish(w, parts)
		<-e.Primed()
		subs := make([]*Subscriber, n)
		for i, name := range namesOf(n) {
			subs[i] = connected(e, world.Delta, parts, name)
			subs[i].ack(subs[i].receive())
		}

		var begun atomic.Int64
		release := make(chan struct{})
		for _, name := range namesOf(n) {
			w = w.with(parts, name, "second")
			w[parts][name].encode = func(string) { begun.Add(1); <-release }
		}
		e.publish(w, parts, namesOf(n)...)
		synctest.Wait()
		if got := begun.Load(); got != workers {
			t.Errorf("%d are assembled at the same time by %d workers", got, workers)
		}
		close(release)
		for _, s := range subs {
			if got := contentsOf(s.receive()); len(got) != 1 || got[0] != "second" {
				t.Errorf("got %q", got)
			}
		}
	})
}
