package push

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// note is a resource of the worlds below: it needs and brings the names in refers.
type note struct {
	row     world.Row
	name    string
	content string
	refers  map[string][]string // names by type
}

type noteSlot struct {
	row  world.Row
	name string
}

func (n *note) Slot() any { return noteSlot{n.row, n.name} }

func (n *note) Encode() world.Encoded {
	return world.Encoded{Name: n.name, Version: world.VersionOf([]byte(n.content)), Body: []byte(n.content)}
}

func (n *note) Refers(to string) iter.Seq[string] { return slices.Values(n.refers[to]) }

// notes is a world of them.
type notes struct {
	rows []map[string]*note
	view func(world.Client) world.View // nil for that of the client's kind
}

func (w notes) View(_ world.Row, c world.Client) world.View {
	if w.view == nil {
		return c.Kind
	}
	return w.view(c)
}

func (w notes) Names(_ world.View, r world.Row) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range w.rows[r] {
			if !yield(name) {
				return
			}
		}
	}
}

func (w notes) Find(_ world.View, r world.Row, name string) (world.Subject, bool) {
	n, ok := w.rows[r][name]
	return n, ok
}

func (notes) Complete() bool { return true }

// step returns the update to a world in which some notes are these, and others gone.
func (w *notes) step(put []*note, gone ...noteSlot) world.Update {
	next := notes{view: w.view}
	for _, row := range w.rows {
		next.rows = append(next.rows, maps.Clone(row))
	}
	u := world.Update{}
	for _, n := range put {
		next.rows[n.row][n.name] = n
		u.Changed = append(u.Changed, world.Changed{Row: n.row, Name: n.name})
	}
	for _, at := range gone {
		delete(next.rows[at.row], at.name)
		u.Changed = append(u.Changed, world.Changed{Row: at.row, Name: at.name})
	}
	*w, u.World = next, next
	return u
}

func newNotes(rows int) *notes {
	w := &notes{}
	for range rows {
		w.rows = append(w.rows, map[string]*note{})
	}
	return w
}

// start runs an engine of which nothing is produced yet.
func start(t *testing.T, c Config, produce func(*Engine)) *Engine {
	t.Helper()
	c.Frame = noFrame
	e := New(c)
	produce(e)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		e.Run(t.Context())
	}()
	t.Cleanup(func() { <-stopped }) // the context ends before
	return e
}

// receiveAll lists what waits to be sent, by type and name, and ACKs it.
func (s *Subscriber) receiveAll(e *Engine) (list []string) {
	for synctest.Wait(); len(s.Out()) > 0; synctest.Wait() {
		r := s.receive()
		for _, res := range r.Resources {
			list = append(list, e.TypeName(r.Type)+" "+res.Name+" "+string(res.Body))
		}
		for _, name := range r.Removed {
			list = append(list, e.TypeName(r.Type)+" -"+name)
		}
		s.ack(r)
	}
	return list
}

func wants(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func deltaClient(e *Engine, c world.Client, types ...world.Type) *Subscriber {
	s := e.Connect(Info{Protocol: protocols[world.Delta]}, c)
	for _, t := range types {
		s.ask(session.Request{Type: t, Wildcard: session.WildcardOn})
	}
	return s
}

// Each producer is primed by itself, and what one has published waits for no other.
func TestProducersAreIndependent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var services, secrets *Producer
		e := start(t, Config{}, func(e *Engine) {
			services = e.Produce([]world.TypeSpec{{Name: "service"}, {Name: "route"}})
			secrets = e.Produce([]world.TypeSpec{{Name: "secret"}})
		})
		s := deltaClient(e, world.Client{}, services.Type(0), secrets.Type(0))
		w, hidden := newNotes(2), newNotes(1)
		services.Publish(w.step([]*note{{0, "a", "1", nil}}))
		wants(t, "one producer has published", s.receiveAll(e), "service a 1")
		select {
		case <-e.Primed():
			t.Error("the engine is primed without one of its producers")
		default:
		}
		secrets.Publish(hidden.step([]*note{{0, "key", "x", nil}}))
		wants(t, "the other has, too", s.receiveAll(e), "secret key x")
		<-e.Primed()
		services.Publish(w.step([]*note{{0, "a", "2", nil}}))
		wants(t, "a step of one", s.receiveAll(e), "service a 2")
	})
}

// lasting is a world in which nobody finds what is named "lasting" before a time.
type lasting struct {
	notes
	until <-chan struct{}
}

func (w lasting) Find(v world.View, r world.Row, name string) (world.Subject, bool) {
	if name == "lasting" {
		<-w.until
	}
	return w.notes.Find(v, r, name)
}

// The order of delivery is that of the protocol, whoever produces a type.
func TestOrderGoesAcrossProducers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first, second *Producer
		e := start(t, Config{Workers: 1, Order: []string{"cluster", "secret", "listener"}}, func(e *Engine) {
			first = e.Produce([]world.TypeSpec{{Name: "listener"}, {Name: "cluster"}})
			second = e.Produce([]world.TypeSpec{{Name: "secret"}})
		})
		w, hidden := newNotes(2), newNotes(1)
		u, until := hidden.step([]*note{{0, "s", "1", nil}}), make(chan struct{})
		u.World = lasting{*hidden, until}
		second.Publish(u)
		s := deltaClient(e, world.Client{}, first.Type(0), first.Type(1), second.Type(0))
		wants(t, "before the other is primed", s.receiveAll(e), "secret s 1")
		first.Publish(w.step([]*note{{0, "l", "1", nil}, {1, "c", "1", nil}}))
		wants(t, "then", s.receiveAll(e), "cluster c 1", "listener l 1")
		busy := e.Connect(Info{Protocol: protocols[world.Delta]}, world.Client{})
		busy.ask(session.Request{Type: second.Type(0), Subscribe: []string{"lasting"}})
		synctest.Wait() // so is the only worker, and looks at who comes later once they have asked for all
		late := deltaClient(e, world.Client{}, first.Type(0), second.Type(0), first.Type(1))
		close(until)
		wants(t, "who comes later", late.receiveAll(e), "cluster c 1", "secret s 1", "listener l 1")
	})
}

// references are types that refer to each other by names of their own.
func references() []world.TypeSpec {
	return []world.TypeSpec{
		{Name: "cluster", Brings: []string{"assignment", "secret"}},
		{Name: "assignment", Awaited: true},
		{Name: "route", Needs: []string{"cluster"}},
		{Name: "table", Needs: []string{"cluster"}, Aggregate: func(string) bool { return true }},
		{Name: "secret", Awaited: true},
	}
}

const (
	clusters = iota
	assignments
	routes
	tables
	secrets
)

func to(typeName string, names ...string) map[string][]string {
	return map[string][]string{typeName: names}
}

// References go by the names that a resource itself yields.
func TestReferencesGoByTheNamesOfTheResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{}, func(e *Engine) { p = e.Produce(references()) })
		w := newNotes(5)
		p.Publish(w.step([]*note{
			{clusters, "c", "1", map[string][]string{"assignment": {"eds-of-c"}, "secret": {"key"}}},
			{assignments, "eds-of-c", "1", nil},
			{assignments, "other", "1", nil},
			{secrets, "key", "1", nil},
			{routes, "r", "1", to("cluster", "c")},
		}))
		s := deltaClient(e, world.Client{}, clusters, assignments, routes, secrets)
		s.receiveAll(e)
		p.Publish(w.step([]*note{{clusters, "c", "2", map[string][]string{"assignment": {"eds-of-c"}, "secret": {"key"}}}}))
		wants(t, "a cluster brings what it names", s.receiveAll(e), "cluster c 2", "assignment eds-of-c 1", "secret key 1")

		p.Publish(w.step([]*note{{clusters, "d", "1", nil}, {routes, "r", "2", to("cluster", "d")}}))
		synctest.Wait()
		r := s.receive()
		if n := len(s.Out()); e.TypeName(r.Type) != "cluster" || n != 0 {
			t.Errorf("%s came, and %d more, before the cluster was ACKed", e.TypeName(r.Type), n)
		}
		s.ack(r)
		wants(t, "the route waits for the cluster it names", s.receiveAll(e), "route r 2")
	})
}

// A NACKed cluster keeps back the route to it alone. An aggregate goes out, and so
// does the route to another.
func TestNACKHoldsBackItsOwnServiceOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{}, func(e *Engine) { p = e.Produce(references()) })
		w := newNotes(5)
		p.Publish(w.step(nil))
		s := deltaClient(e, world.Client{}, clusters, routes, tables)
		s.receiveAll(e)
		p.Publish(w.step([]*note{
			{clusters, "bad", "1", nil},
			{clusters, "good", "1", nil},
			{routes, "to-bad", "1", to("cluster", "bad")},
			{routes, "to-good", "1", to("cluster", "good")},
			{tables, "all", "1", to("cluster", "bad", "good")},
		}))
		var got []string
		for synctest.Wait(); len(s.Out()) > 0; synctest.Wait() {
			r := s.receive()
			bad := slices.ContainsFunc(r.Resources, func(res *world.Resource) bool { return res.Name == "bad" })
			for _, res := range r.Resources {
				if !bad {
					got = append(got, res.Name)
				}
			}
			if bad {
				s.nack(r)
			} else {
				s.ack(r)
			}
		}
		slices.Sort(got)
		wants(t, "with a bad cluster", got, "all", "good", "to-good")
		p.Publish(w.step([]*note{{clusters, "bad", "2", nil}}))
		wants(t, "once it is fixed", s.receiveAll(e), "cluster bad 2", "route to-bad 1")
	})
}

// A NACKed cluster keeps back what needs it, and no aggregate that needs this in turn.
func TestNACKHoldsBackNoAggregateBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clusters, hosts, listeners = 0, 1, 2
		var p *Producer
		e := start(t, Config{}, func(e *Engine) {
			p = e.Produce([]world.TypeSpec{
				{Name: "cluster"},
				{Name: "host", Needs: []string{"cluster"}},
				{Name: "listener", Needs: []string{"cluster", "host"}, Aggregate: func(string) bool { return true }},
			})
		})
		w := newNotes(3)
		s := deltaClient(e, world.Client{}, clusters, hosts, listeners)
		p.Publish(w.step([]*note{{clusters, "good", "1", nil}, {hosts, "good", "1", to("cluster", "good")}, {listeners, "all", "1", to("host", "good")}}))
		s.receiveAll(e)
		p.Publish(w.step([]*note{{clusters, "bad", "1", nil}, {hosts, "bad", "1", to("cluster", "bad")}}))
		synctest.Wait()
		s.nack(s.receive())
		p.Publish(w.step([]*note{{listeners, "all", "2", to("host", "good", "bad")}}))
		wants(t, "with a host that waits for a bad cluster", s.receiveAll(e), "listener all 2")
		p.Publish(w.step([]*note{{clusters, "bad", "2", nil}}))
		wants(t, "once it is fixed", s.receiveAll(e), "cluster bad 2", "host bad 1")
	})
}

// A removal waits for what was sent when it became due, not for all that
// follows: steady change of what might refer to it does not keep it for ever.
func TestRemovalUnderSteadyChurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{}, func(e *Engine) { p = e.Produce(references()) })
		w := newNotes(5)
		p.Publish(w.step([]*note{{clusters, "c", "1", nil}, {clusters, "d", "1", nil}, {routes, "r", "1", to("cluster", "c")}}))
		s := deltaClient(e, world.Client{}, clusters, routes)
		s.receiveAll(e)
		// The route leaves the cluster, which goes in the same step.
		p.Publish(w.step([]*note{{routes, "r", "2", to("cluster", "d")}}, noteSlot{clusters, "c"}))
		synctest.Wait()
		order := []string{}
		for round := 3; round < 10; round++ {
			r := s.receive() // of routes, or the removal
			for _, name := range r.Removed {
				order = append(order, "-"+name)
			}
			for _, res := range r.Resources {
				order = append(order, string(res.Body))
			}
			// The next change of the route comes before this one is ACKed.
			p.Publish(w.step([]*note{{routes, "r", strconv.Itoa(round), to("cluster", "d")}}))
			synctest.Wait()
			s.ack(r)
			synctest.Wait()
		}
		if at := slices.Index(order, "-c"); at < 1 || at > 3 || order[0] != "2" {
			t.Errorf("the order was %v: the removal follows the ACK of the route that left the cluster", order)
		}
	})
}

// A revocation waits for nothing.
func TestRevocationIsSentAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{}, func(e *Engine) { p = e.Produce(references()) })
		w := newNotes(5)
		p.Publish(w.step([]*note{{clusters, "c", "1", to("secret", "key")}, {secrets, "key", "1", nil}}))
		s := deltaClient(e, world.Client{}, clusters, secrets)
		s.receiveAll(e)
		u := w.step([]*note{{clusters, "c", "2", nil}}, noteSlot{secrets, "key"})
		for i := range u.Changed {
			u.Changed[i].Revoked = true
		}
		p.Publish(u)
		synctest.Wait()
		if n := len(s.Out()); n != 2 {
			t.Fatalf("%d responses came at once, want the cluster and the removal of its secret", n)
		}
		wants(t, "both", s.receiveAll(e), "cluster c 2", "secret -key")
	})
}

// A type that nobody produces may be asked for. It is answered as its row says,
// and harms no other.
func TestTypeThatNobodyProduces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{}, func(e *Engine) { p = e.Produce([]world.TypeSpec{{Name: "service"}}) })
		w := newNotes(1)
		p.Publish(w.step([]*note{{0, "a", "1", nil}}))
		empty, ok := e.Admit(world.TypeSpec{Name: "empty", Whole: true}, 2)
		silent, also := e.Admit(world.TypeSpec{Name: "silent", Absent: func(string, world.Mode) world.Absence { return world.Silence }}, 2)
		if again, _ := e.Admit(world.TypeSpec{Name: "empty"}, 2); !ok || !also || again != empty {
			t.Fatalf("admitted %t and %t, and again as %d", ok, also, again)
		}
		s := e.Connect(Info{}, world.Client{})
		s.ask(session.Request{Type: empty, Mode: world.WholeState, Replace: true, Wildcard: session.WildcardOn})
		if r := s.receive(); r.Type != empty || len(r.Resources) != 0 {
			t.Errorf("got %v", r)
		}
		s.ask(session.Request{Type: silent, Mode: world.Delta, Subscribe: []string{"x"}})
		nothingComes(t, s)
		s.ask(session.Request{Type: p.Type(0), Mode: world.Delta, Wildcard: session.WildcardOn})
		wants(t, "the others", s.receiveAll(e), "service a 1")
	})
}

// A stream takes each type in a mode of its own.
func TestModeIsOfStreamAndType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{}, func(e *Engine) {
			p = e.Produce([]world.TypeSpec{{Name: "whole", Whole: true}, {Name: "also whole", Whole: true}})
		})
		w := newNotes(2)
		p.Publish(w.step([]*note{{0, "a", "1", nil}, {0, "b", "1", nil}, {1, "a", "1", nil}, {1, "b", "1", nil}}))
		s := e.Connect(Info{}, world.Client{})
		s.ask(session.Request{Type: 0, Mode: world.WholeState, Replace: true, Wildcard: session.WildcardOn})
		s.ask(session.Request{Type: 1, Mode: world.Delta, Wildcard: session.WildcardOn})
		s.receiveAll(e)
		p.Publish(w.step(nil, noteSlot{0, "a"}, noteSlot{1, "a"}))
		wants(t, "a removal", s.receiveAll(e), "whole b 1", "also whole -a")
	})
}

// variants are of one resource, by the client's zone; equal ones share bytes.
func TestVariantsShareBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{}, func(e *Engine) { p = e.Produce([]world.TypeSpec{{Name: "assignment"}}) })
		p.Publish(world.Update{World: zoned{}})
		<-e.Primed()
		bytes := map[string]*world.Resource{}
		for i, zone := range []string{"a", "b", "a", "b", "a"} {
			c := world.Client{}
			c.Locality.Zone = zone
			s := e.Connect(Info{Protocol: protocols[world.Delta]}, c)
			s.ask(session.Request{Type: 0, Subscribe: []string{"x"}})
			res := s.receive().Resources[0]
			if bytes[zone] == nil {
				bytes[zone] = res
			}
			if string(res.Body) != "nearest to "+zone || res != bytes[zone] {
				t.Errorf("client %d in zone %s got %q", i, zone, res.Body)
			}
		}
	})
}

type zoned struct{}

type variant struct{ zone string }

func (v variant) Slot() any { return v }

func (v variant) Encode() world.Encoded {
	body := []byte("nearest to " + v.zone)
	return world.Encoded{Name: "x", Version: world.VersionOf(body), Body: body}
}

func (zoned) View(_ world.Row, c world.Client) world.View  { return c.Locality.Zone }
func (zoned) Names(world.View, world.Row) iter.Seq[string] { return slices.Values([]string{"x"}) }
func (zoned) Find(v world.View, _ world.Row, _ string) (world.Subject, bool) {
	return variant{fmt.Sprint(v)}, true
}
func (zoned) Complete() bool { return true }

// A debounce is of a type and a mode: it delays nobody else.
func TestDebounceIsOfTypeAndMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		slow := [world.Modes]world.Debounce{world.WholeState: {Quiet: time.Second, Max: 10 * time.Second}}
		e := start(t, Config{}, func(e *Engine) { p = e.Produce([]world.TypeSpec{{Name: "slow", Debounce: slow}, {Name: "fast"}}) })
		w := newNotes(2)
		p.Publish(w.step([]*note{{0, "a", "0", nil}, {1, "a", "0", nil}}))
		whole, delta := e.Connect(Info{}, world.Client{}), deltaClient(e, world.Client{}, 0, 1)
		for typ := range world.Type(2) {
			whole.ask(session.Request{Type: typ, Replace: true, Names: []string{"a"}})
		}
		whole.receiveAll(e)
		delta.receiveAll(e)
		begin := time.Now()
		p.Publish(w.step([]*note{{0, "a", "1", nil}, {1, "a", "1", nil}}))
		wants(t, "delta", delta.receiveAll(e), "slow a 1", "fast a 1")
		wants(t, "whole state", whole.receiveAll(e), "fast a 1")
		r := whole.receive()
		if took := time.Since(begin); took != time.Second || e.TypeName(r.Type) != "slow" {
			t.Errorf("%s came after %v", e.TypeName(r.Type), took)
		}
	})
}

// A type that nobody produces makes room for another, and its counts end, once nobody has
// used it for a while. One in use stays.
func TestAdmittedTypesPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{}, func(e *Engine) { p = e.Produce([]world.TypeSpec{{Name: "service"}}) })
		p.Publish(newNotes(1).step(nil))
		counted := func() (names []string) {
			for _, c := range e.Counts() {
				names = append(names, c.Type)
			}
			return names
		}
		admit := func(name string) (world.Type, bool) { return e.Admit(world.TypeSpec{Name: name, Whole: true}, 2) }
		used, _ := admit("used")
		again, _ := admit("used")
		left, _ := admit("left")
		if _, ok := admit("third"); ok || used != again {
			t.Errorf("used is %d and %d, and a third type is admitted: %t", used, again, ok)
		}
		e.Release(used) // and not again
		e.Release(left)
		time.Sleep(typeRetention - time.Second)
		if _, ok := admit("third"); ok {
			t.Error("a type has lost its place at once")
		}
		wants(t, "just released", counted(), "used", "left")
		time.Sleep(time.Second)
		wants(t, "released for long", counted(), "used")
		if at, ok := admit("third"); !ok || at != left {
			t.Errorf("a type that comes later is %d, %t", at, ok)
		}
		wants(t, "with the next one", counted(), "used", "third")
		if _, ok := admit("left"); ok {
			t.Error("there is room for one more")
		}
		s := e.Connect(Info{}, world.Client{})
		e.Connect(Info{}, world.Client{}).ask(session.Request{Type: p.Type(0), Mode: world.WholeState, Replace: true, Names: []string{"a"}})
		wants(t, "once a client asks for it", counted(), "service", "used", "third")
		s.ask(session.Request{Type: left, Mode: world.WholeState, Replace: true, Wildcard: session.WildcardOn})
		if r := s.receive(); r.Type != left || e.TypeName(left) != "third" {
			t.Errorf("got %v", r)
		}
	})
}
