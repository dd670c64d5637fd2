package push

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// Producer makes the resources of some types of an engine. It publishes its worlds by
// itself, and is primed and complete by itself. A type is answered once its producer has
// published, regardless of other producers.
type Producer struct {
	wake  chan<- struct{} // of the dispatcher
	first world.Type      // of its rows
	inbox inbox
	world atomic.Pointer[world.World] // nil until the first is published
	later bool                        // Primed does not wait for its first world, see [Engine.ProduceLater]

	remembers, waited bool // of the world; guarded by the engine's step
}

// Produce enters a producer with its table of types. All producers are entered
// before [Engine.Run]. It panics if another producer has one of the types: a type has one owner.
func (e *Engine) Produce(rows []world.TypeSpec) *Producer { return e.produce(rows, false) }

// ProduceLater enters a producer that publishes nothing before a client asks for one of its
// types. [Engine.Primed] does not wait for it.
func (e *Engine) ProduceLater(rows []world.TypeSpec) *Producer { return e.produce(rows, true) }

func (e *Engine) produce(rows []world.TypeSpec, later bool) *Producer {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.table.Load()
	p := &Producer{wake: e.wake, first: world.Type(len(before.types)), inbox: newInbox(), later: later}
	infos, parts := make([]world.Info, len(rows)), slices.Clone(before.types)
	for i, spec := range rows {
		if _, taken := before.Named(spec.Name); taken {
			panic("push: the type " + spec.Name + " has a producer already")
		}
		infos[i] = world.Info{TypeSpec: spec, Producer: len(e.producers), Row: world.Row(i)}
		parts = append(parts, &typeInfo{producer: p, counts: &typeCounters{}, classes: classesOf(p.Type(world.Row(i)), &spec)})
	}
	e.table.Store(tableOf(before.With(e.config.Order, infos...), parts))
	e.producers = append(e.producers, p)
	return p
}

// Publish stores the producer's newest world and returns.
func (p *Producer) Publish(u world.Update) {
	p.inbox.put(u)
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Type returns the engine's type of a row.
func (p *Producer) Type(r world.Row) world.Type { return p.first + world.Type(r) }

// Type finds a type by its name in the protocol.
func (e *Engine) Type(name string) (world.Type, bool) {
	return e.table.Load().Named(name)
}

// TypeName returns the name of a type in the protocol.
func (e *Engine) TypeName(t world.Type) string { return e.table.Load().types[t].Name }

// Whole reports whether a type goes to [world.WholeState] subscribers as a full set.
func (e *Engine) Whole(t world.Type) bool { return e.table.Load().types[t].Whole }

// maxTypes bounds the types of an engine, including admitted ones.
const maxTypes = 256

// typeRetention is how long an admitted type and its counts stay after its last user has
// released it.
const typeRetention = 10 * time.Minute

// admission is the use of a type that no producer has. It is guarded by the engine's mu.
type admission struct {
	users int
	left  time.Time // when the last of them released it
}

func (a *admission) expired(now time.Time) bool {
	return a != nil && a.users == 0 && now.Sub(a.left) >= typeRetention
}

// Admit enters a type without a producer. Clients can then ask for it and are answered as
// its row defines. If a type has the name already, Admit returns that type. ok is false if
// most types are admitted already. A caller that no longer uses the type calls
// [Engine.Release]: the type stays for 10 minutes more, and then makes room for another.
func (e *Engine) Admit(spec world.TypeSpec, most int) (t world.Type, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.table.Load()
	if t, ok := before.Named(spec.Name); ok {
		if a := before.types[t].admitted; a != nil {
			a.users++
		}
		return t, true
	}
	info, part := world.Info{TypeSpec: spec, Producer: -1}, &typeInfo{counts: &typeCounters{}, admitted: &admission{users: 1}}
	part.counts.asked.Store(true) // a client admits it
	t, admitted, now := world.Type(len(before.types)), 0, time.Now()
	for at, other := range before.types {
		if other.admitted.expired(now) {
			t = world.Type(at)
		} else if other.admitted != nil {
			admitted++
		}
	}
	if admitted >= most || t >= maxTypes {
		return 0, false
	}
	parts := slices.Clone(before.types)
	if int(t) < len(before.types) {
		parts[t] = part
		e.table.Store(tableOf(before.Replacing(e.config.Order, t, info), parts))
	} else {
		e.table.Store(tableOf(before.With(e.config.Order, info), append(parts, part)))
	}
	return t, true
}

// Release gives an admitted type back, once for each call of [Engine.Admit]. The caller
// first closes the subscribers that asked for the type.
func (e *Engine) Release(t world.Type) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.table.Load().types[t].admitted
	if a == nil {
		return
	}
	if a.users--; a.users == 0 {
		a.left = time.Now()
	}
}
