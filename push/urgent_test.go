package push

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/push/queue"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// crowd is many subscribers of one resource each, two resources beside, and one
// worker for all, who puts one resource into a response.
type crowd struct {
	*Engine
	world fakeWorld
	subs  []*Subscriber

	mu        sync.Mutex
	encoded   []string      // in the order of assembly
	meanwhile func()        // called when something is encoded; may be nil
	stop      chan struct{} // the worker waits here, unless nil
}

func newCrowd(t *testing.T, n int) *crowd {
	t.Helper()
	c := &crowd{Engine: run(t, Config{Workers: 1, Budget: 1}), world: many(n + 2)}
	c.publish(c.world, parts)
	<-c.Primed()
	for _, name := range namesOf(n) {
		s := connected(c.Engine, world.Delta, parts, name)
		s.ack(s.receive())
		c.subs = append(c.subs, s)
	}
	return c
}

// change publishes one step in which some resources change, urgently or not.
func (c *crowd) change(content string, urgent bool, names ...string) {
	u := world.Update{}
	for _, name := range names {
		c.world = c.world.with(parts, name, content)
		c.world[parts][name].encode = c.note
		u.Changed = append(u.Changed, world.Changed{Row: parts, Name: name, Urgent: urgent})
	}
	u.World = c.world
	c.producers[0].Publish(u)
}

func (c *crowd) note(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.encoded = append(c.encoded, name)
	if c.meanwhile != nil {
		c.meanwhile()
	}
	if c.stop != nil {
		<-c.stop
	}
}

// busy keeps the worker busy with the first subscriber until it is let go.
func (c *crowd) busy() (release func()) {
	c.stop = make(chan struct{})
	c.change("to be busy with", false, nameAt(0))
	synctest.Wait()
	return func() { close(c.stop) }
}

func (c *crowd) assembled() []string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.encoded
}

// An urgent change that comes last goes out first.
func TestUrgentOvertakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 50
		c := newCrowd(t, n)
		release := c.busy()
		for _, name := range namesOf(n)[1:] {
			c.change("cosmetic", false, name)
			synctest.Wait()
		}
		c.change("gone", true, nameAt(n-1), nameAt(n-2))
		synctest.Wait()
		release()
		got := c.assembled()
		if first := slices.Sorted(slices.Values(got[1:3])); len(got) != n || !slices.Equal(first, []string{nameAt(n - 2), nameAt(n - 1)}) {
			t.Errorf("%d were assembled, first of them %v", len(got), first)
		}
	})
}

// In one step, too, of which the first subscriber marked has its turn at once.
func TestUrgentGoesFirstInItsStep(t *testing.T) {
	for range 10 {
		synctest.Test(t, func(t *testing.T) {
			const n = 50
			c := newCrowd(t, n)
			u := world.Update{World: c.world}
			for i, name := range namesOf(n) {
				c.world = c.world.with(parts, name, "changed")
				c.world[parts][name].encode = c.note
				u.Changed = append(u.Changed, world.Changed{Row: parts, Name: name, Urgent: i == n-1})
			}
			u.World = c.world
			c.producers[0].Publish(u)
			if got := c.assembled(); len(got) != n || got[0] != nameAt(n-1) {
				t.Errorf("%d were assembled, first of them %v", len(got), got[0])
			}
		})
	}
}

// However much is urgent, every fifth turn is for what is not.
func TestUrgentStarvesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, ordinary = 101, 10
		c := newCrowd(t, n)
		release := c.busy()
		c.change("cosmetic", false, namesOf(ordinary + 1)[1:]...)
		c.change("gone", true, namesOf(n)[ordinary+1:]...)
		synctest.Wait()
		release()
		got, seen := c.assembled(), 0
		for turn, name := range got[1:] {
			if !slices.Contains(namesOf(ordinary+1), name) {
				continue
			}
			if seen++; turn+1 != seen*(queue.Overtakes+1) {
				t.Errorf("ordinary subscriber %d had turn %d", seen, turn+1)
			}
		}
		if len(got) != n || seen != ordinary {
			t.Errorf("%d were assembled, %d of them ordinary", len(got), seen)
		}
	})
}

// A subscriber that has to answer first goes before the others when it has.
func TestUrgentWaitsForAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 20
		c := newCrowd(t, n)
		late := c.subs[n-1]
		c.change("not ACKed yet", false, nameAt(n-1))
		open := late.receive()
		c.change("gone", true, nameAt(n-1))
		synctest.Wait()
		release := c.busy()
		c.change("cosmetic", false, namesOf(n - 1)[1:]...)
		synctest.Wait()
		late.ack(open)
		synctest.Wait()
		release()
		if got := c.assembled(); len(got) != n+1 || got[2] != nameAt(n-1) {
			t.Errorf("assembled %v", got)
		}
	})
}

// Urgent resources that have to wait for the subscriber's answer go before other
// subscribers' ordinary ones, too.
func TestRestOfWhatIsUrgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 20
		c := newCrowd(t, n)
		s := connected(c.Engine, world.Delta, parts, nameAt(n), nameAt(n+1))
		s.ack(s.receive())
		s.ack(s.receive())
		c.change("gone", true, nameAt(n), nameAt(n+1))
		first := s.receive()
		release := c.busy()
		early := 0
		c.meanwhile = func() {
			if len(s.Out()) == 0 {
				early++
			}
		}
		c.change("cosmetic", false, namesOf(n)[1:]...)
		synctest.Wait()
		s.ack(first)
		synctest.Wait()
		release()
		c.assembled()
		if early != 0 {
			t.Errorf("%d others had their turn before", early)
		}
	})
}

// If one response does not hold all of a subscriber's resources, the urgent ones are
// in the first, and those that wait longer are still urgent.
func TestUrgentResourcesGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{Budget: 3 * len("changed"), Patience: time.Hour})
		const n = 10
		w := many(n)
		e.publish(w, parts)
		<-e.Primed()
		s := connected(e, world.Delta, parts, namesOf(n)...)
		for range n {
			s.ack(s.receive())
		}
		w = w.with(parts, nameAt(0), "open")
		e.publish(w, parts, nameAt(0))
		open := s.receive()
		u := world.Update{}
		for i, name := range namesOf(n) {
			w = w.with(parts, name, "changed")
			u.Changed = append(u.Changed, world.Changed{Row: parts, Name: name, Urgent: i >= n-4})
		}
		u.World = w
		e.producers[0].Publish(u)
		s.ack(open)
		var got []string
		for len(got) < n {
			r := s.receive()
			if len(r.Resources) > 3 {
				t.Fatalf("%d resources in a response", len(r.Resources))
			}
			for _, res := range r.Resources {
				got = append(got, res.Name)
			}
			s.ack(r)
		}
		if first := slices.Sorted(slices.Values(got[:4])); !slices.Equal(first, namesOf(n)[n-4:]) {
			t.Errorf("first came %v", first)
		}
	})
}
