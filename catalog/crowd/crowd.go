// Package crowd bounds the instances of a port at which an Envoy listens. Clients of a STATIC service
// without an address choose an instance, and connect to its address and port. An Envoy that listens
// there has a listener for each instance, so there is a bound, over all services of a port. The
// values are immutable.
package crowd

import (
	"cmp"

	"github.com/isthmus-mesh/isthmus/immutable"
)

// Most bounds the endpoints of a port's services without addresses that an Envoy has listeners for.
const Most = 250

// shares are the parts of [Most] that services of a crowded port ask for. A service asks for the
// smallest that is enough, so that what it asks for rarely changes with its endpoints.
var shares = [...]int{2, 10, 50, Most}

// Share returns the part of [Most] that a service with so many endpoints asks for; [Most] + 1 if it
// has more endpoints than [Most].
func Share(endpoints int) int {
	for _, share := range shares {
		if endpoints <= share {
			return share
		}
	}
	return Most + 1
}

// Ports are the numbers of instances of each port, over all services.
type Ports struct {
	counts immutable.Map[uint32, int]
}

// None is no instances.
func None() Ports { return Ports{immutable.New[uint32, int](cmp.Compare[uint32])} }

// Len returns the number of ports with instances.
func (p Ports) Len() int { return p.counts.Len() }

// Count returns the number of instances of a port.
func (p Ports) Count(number uint32) int {
	n, _ := p.counts.Get(number)
	return n
}

// Crowded reports whether a port has more instances than [Most].
func (p Ports) Crowded(number uint32) bool { return p.Count(number) > Most }

// Step is a change of the instances of a port.
type Step struct {
	more  int
	other bool // some service asks for another share
}

// Then adds a change of the instances of one service, which may be another service than before.
func (s Step) Then(was, is int, redefined bool) Step {
	return Step{s.more + is - was, s.other || redefined || Share(was) != Share(is)}
}

// With returns the numbers after a change.
func (p Ports) With(steps map[uint32]Step) Ports {
	if len(steps) == 0 {
		return p
	}
	edit := p.counts.Edit()
	for number, step := range steps {
		if is := p.Count(number) + step.more; is == 0 {
			edit.Delete(number)
		} else {
			edit.Set(number, is)
		}
	}
	return Ports{edit.Map()}
}

// Moved reports whether other services may have listeners than before a change that led to these
// numbers.
func (p Ports) Moved(number uint32, by Step) bool {
	is := p.Count(number)
	return is > Most && by.other || (is > Most) != (is-by.more > Most)
}
