package xds_test

import (
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// While the only worker is busy, an endpoint of each of many services gets
// another weight and, last of all, one service loses its endpoint. Nothing is
// assembled for any other client before that of the loss has got it.
func TestLossesOvertakeCosmetics(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		const busy, lossy = "busy.example", "lossy.example"
		hosts := []string{busy, lossy, tickHost}
		cosmetic := make([]string, 20)
		for i := range cosmetic {
			cosmetic[i] = fmt.Sprintf("cosmetic-%d.example", i)
		}
		w := &watched{rig: newRig(t, setup{engine: push.Config{Workers: 1}})}
		clients := map[string]*xdsclient.Client{}
		for _, host := range append(hosts, cosmetic...) {
			w.apply(upserts(service("shop", host), endpoint("shop", host, "one", "10.0.0.1"))...)
			clients[host] = connect(w.rig, xdsclient.Config{Node: xdsclient.Node(host, "shop", "envoy")})
			clients[host].Subscribe(eds, clusterOf(host))
			clients[host].Await("its endpoint", leads(host, "10.0.0.1"))
		}
		w.await("ACK of all", func() bool { // else the loss may have to wait for that of its client
			return !slices.ContainsFunc(w.engine.Clients(), func(c push.ClientStatus) bool { return c.Types[0].State != session.ACKed })
		})
		working, release, sent := make(chan struct{}), make(chan struct{}), make(chan struct{})
		letGo, goOn := sync.OnceFunc(func() { close(sent) }), sync.OnceFunc(func() { close(release) })
		t.Cleanup(letGo)
		t.Cleanup(goOn)
		encode := func(name string) {
			switch name {
			case clusterOf(busy):
				close(working)
				<-release
			case clusterOf(lossy), clusterOf(tickHost):
			default:
				<-sent
			}
		}
		w.encode.Store(&encode)
		w.apply(heavier(busy, 7)...)
		awaited(t, "work of the only worker", working)
		for _, host := range cosmetic {
			w.apply(heavier(host, 7)...)
		}
		w.dispatched(1)
		w.apply(deletes(endpoint("shop", lossy, "one", "10.0.0.1"))...)
		w.dispatched(2)
		goOn()
		clients[lossy].Await("the loss", leads(lossy))
		letGo()
		for _, host := range cosmetic {
			clients[host].Await("the weight", func(s *xdsclient.State) bool { return weightOf(s, clusterOf(host)) == 7 })
		}
	})
}

func heavier(host string, weight uint32) []model.Event {
	e := endpoint("shop", host, "one", "")
	e.Spec = model.Endpoint{Address: "10.0.0.1", Weight: weight}
	return upserts(e)
}

// watched publishes worlds that tell what the engine does with them.
type watched struct {
	*rig
	encode atomic.Pointer[func(name string)] // called by a worker; nil for nothing
	finds  atomic.Pointer[func(name string)] // as above, by whoever looks
}

func (w *watched) apply(events ...model.Event) {
	w.revision++
	change := w.builder.Apply(w.revision, events)
	snapshot := w.builder.Snapshot()
	w.producer.Publish(world.Update{
		World: watchedWorld{envoy.NewWorld(snapshot, true, rootNamespace), w, w.finds.Load()}, Changed: envoy.Changes(snapshot, change), Committed: time.Now(),
	})
}

// dispatched returns when whatever was published so far has been handed to the
// workers: when the engine looks up, first of what the next step changed, the
// service of the rig's own. Each time it needs another weight.
func (w *watched) dispatched(weight uint32) {
	for range 2 { // the first may be joined with what was published before
		seen := make(chan struct{})
		once := sync.OnceFunc(func() { close(seen) })
		find := func(found string) {
			if found == clusterOf(tickHost) {
				once()
			}
		}
		w.finds.Store(&find)
		weight += 100
		w.apply(heavier(tickHost, weight)...)
		awaited(w.t, "look at the tick", seen)
	}
}

type watchedWorld struct {
	*envoy.World
	w    *watched
	find *func(name string)
}

func (w watchedWorld) Find(v world.View, r world.Row, name string) (world.Subject, bool) {
	if w.find != nil {
		(*w.find)(name)
	}
	s, ok := w.World.Find(v, r, name)
	return watchedSubject{s, w.w}, ok
}

type watchedSubject struct {
	world.Subject
	w *watched
}

func (s watchedSubject) Refers(to string) iter.Seq[string] {
	if referrer, ok := s.Subject.(world.Referrer); ok {
		return referrer.Refers(to)
	}
	return func(func(string) bool) {}
}

func (s watchedSubject) Encode() world.Encoded {
	e := s.Subject.Encode()
	if encode := s.w.encode.Load(); encode != nil {
		(*encode)(e.Name)
	}
	return e
}
