package machines

import (
	"net/netip"

	"github.com/isthmus-mesh/isthmus/model"
)

// State says whether a machine should be given traffic.
type State int

// The states of a machine.
const (
	// Unknown is of a machine of which the cloud does not know it at this time: what
	// was known of it before stays. If nothing was, it is given none.
	Unknown State = iota
	Serving
	NotServing // it is stopped, begins, or its health is bad
	Ending     // it is being deleted
	// Unanswered is of a machine that runs, and that whatever looks after its health gets
	// no valid answer from. What was known of it before stays for some readings.
	Unanswered
)

// patience is in how many readings in a row a machine may be [Unanswered] until it counts
// as [NotServing]. Readings in which no machine of the group is served do not count, and
// end no row: it may be what looks after them that fails.
const patience = 3

// Machine is one, as a cloud describes it.
type Machine struct {
	// ID lasts as long as the machine and no other one has it. It does not begin with a
	// slash, and is in lower case where the cloud does not distinguish the case.
	ID string
	// Address is that of its primary interface; the zero one if it has none.
	Address netip.Addr
	// Unjoined says that it has an interface which was not found, so that its address
	// stays what it was.
	Unjoined bool
	State    State
	Tags     map[string]string
	Locality model.Locality

	unanswered int // in how many readings that count
}

// after completes what the cloud does not know of a machine with what it said before.
// Counts says that another machine of the group is served.
func (m Machine) after(before Machine, counts bool) Machine {
	switch m.State {
	case Unknown:
		m.State, m.unanswered = before.State, before.unanswered
	case Unanswered:
		m.State, m.unanswered = before.State, before.unanswered
		if counts {
			m.unanswered++
		}
		if m.unanswered >= patience {
			m.State = NotServing
		}
	case Serving, NotServing, Ending:
	}
	if m.Unjoined && !m.Address.IsValid() {
		m.Address = before.Address
	}
	return m
}

func (m Machine) health() model.Health {
	switch m.State {
	case Serving:
		return model.Healthy
	case Ending:
		return model.Terminating
	case Unknown, Unanswered, NotServing:
		return model.Unhealthy
	}
	return model.Unhealthy
}
