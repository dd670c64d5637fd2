package machines

import (
	"net/netip"

	"github.com/isthmus-mesh/isthmus/model"
)

// State says whether a machine should be given traffic.
type State int

// The states of a machine.
const (
	// Unknown means that the cloud does not know the state now: the previous state
	// stays. Without a previous state, the machine gets no traffic.
	Unknown State = iota
	Serving
	NotServing // stopped, starting, or with bad health
	Ending     // being deleted
	// Unanswered means that the machine runs but does not answer its health check.
	// The previous state stays for some readings.
	Unanswered
)

// patience is the number of consecutive readings as [Unanswered] after which a
// machine counts as [NotServing]. Readings in which no machine of the group is served
// neither count nor restart the count: the health check itself may have failed.
const patience = 3

// Machine is a machine as a cloud describes it.
type Machine struct {
	// ID is unique and lasts as long as the machine. It does not begin with a slash,
	// and is in lower case if the cloud ignores case.
	ID string
	// Address is the address of the primary interface; zero without one.
	Address netip.Addr
	// Unjoined marks a machine with an interface that was not found; its address
	// stays as it was.
	Unjoined bool
	State    State
	Tags     map[string]string
	Locality model.Locality

	unanswered int // number of readings that count
}

// after fills in the unknown state and address of a machine from its previous
// reading. Counts is true if another machine of the group is served.
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
