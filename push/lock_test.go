package push

import (
	"testing"
	"testing/synctest"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// slow is a world one of whose look-ups takes its time.
type slow struct {
	fakeWorld
	find, view, complete <-chan struct{} // what it waits for, if set
}

// The clients of a namespace have another view in a slow world.
const movers, moved = "movers", "another view"

func await(c <-chan struct{}) {
	if c != nil {
		<-c
	}
}

func (w slow) Find(v world.View, r world.Row, name string) (world.Subject, bool) {
	await(w.find)
	if v == moved {
		return &fakeSubject{t: r, name: name, content: "moved"}, true
	}
	return w.fakeWorld.Find(v, r, name)
}

func (w slow) View(r world.Row, c world.Client) world.View {
	await(w.view)
	if c.Namespace == movers {
		return moved
	}
	return w.fakeWorld.View(r, c)
}

func (w slow) Complete() bool {
	await(w.complete)
	return true
}

// While the dispatcher is in a look-up of a new world, all clients are served the
// world before. One that comes meanwhile, or asks for more, misses nothing of the new.
func TestLookUpsOfTheDispatcherKeepNobodyWaiting(t *testing.T) {
	for name, slowly := range map[string]func(w *slow, free <-chan struct{}){
		"find":     func(w *slow, free <-chan struct{}) { w.find = free },
		"view":     func(w *slow, free <-chan struct{}) { w.view = free },
		"complete": func(w *slow, free <-chan struct{}) { w.complete = free },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := run(t, Config{})
				before := many(3)
				e.publish(before, parts)
				synctest.Wait()
				there := connected(e, world.Delta, parts, nameAt(0))
				there.ack(there.receive())
				synctest.Wait()

				free := make(chan struct{})
				w := slow{fakeWorld: before.with(parts, nameAt(0), "new")}
				slowly(&w, free)
				e.producers[0].Publish(world.Update{World: w, Reviewed: []string{"*"}, Changed: []world.Changed{{Row: parts, Name: nameAt(0)}}})
				synctest.Wait() // the dispatcher waits for the world
				there.ask(session.Request{Type: parts, Subscribe: []string{nameAt(1)}})
				came := e.Connect(Info{Protocol: protocols[world.Delta]}, world.Client{Namespace: "with a view of its own"})
				came.ask(session.Request{Type: parts, Subscribe: []string{nameAt(0)}})
				mover := e.Connect(Info{Protocol: protocols[world.Delta]}, world.Client{Namespace: movers})
				mover.ask(session.Request{Type: parts, Subscribe: []string{nameAt(2)}})
				for _, s := range []*Subscriber{there, came, mover} {
					r := s.receive()
					wants(t, "meanwhile", contentsOf(r), before[parts][r.Resources[0].Name].content)
					s.ack(r)
				}
				close(free)
				for _, s := range []*Subscriber{there, came} {
					wants(t, "afterwards", contentsOf(s.receive()), "new")
				}
				wants(t, "another view", contentsOf(mover.receive()), "moved")
			})
		})
	}
}
