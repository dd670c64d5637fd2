package pushtest

import (
	"iter"
	"reflect"
	"slices"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// place is a resource of a producer.
type place struct {
	world.Row
	name string
}

// fault is a kind of failure of a producer for a resource.
type fault int

const (
	lostFault  fault = iota + 1 // Find panics
	spoilFault                  // Encode panics
)

// stage is one published world, with the faults that the suite gives it.
type stage struct {
	world.World
	complete bool
	faults   map[place]fault
	cursed   []world.Client // clients with views that panic
}

func (s *stage) Complete() bool { return s.complete && s.World.Complete() }

func (s *stage) View(r world.Row, c world.Client) world.View {
	if s.curses(c) {
		panic("the view of a client")
	}
	return s.World.View(r, c)
}

func (s *stage) curses(c world.Client) bool {
	return slices.ContainsFunc(s.cursed, func(other world.Client) bool { return reflect.DeepEqual(c, other) })
}

func (s *stage) Find(v world.View, r world.Row, name string) (world.Subject, bool) {
	at := s.faults[place{r, name}]
	if at == lostFault {
		panic("the look-up of " + name)
	}
	subject, ok := s.World.Find(v, r, name)
	if ok && at == spoilFault {
		return spoilt{subject}, true
	}
	return subject, ok
}

// spoilt is a subject that cannot be encoded.
type spoilt struct{ world.Subject }

func (spoilt) Encode() world.Encoded { panic("the content of a resource") }

func (s spoilt) Refers(to string) iter.Seq[string] {
	if r, ok := s.Subject.(world.Referrer); ok {
		return r.Refers(to)
	}
	return func(func(string) bool) {}
}
