package envoy

import (
	"iter"
	"sync/atomic"
	"time"

	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push"
)

// spreadAssignment is a load assignment that names collections.
type spreadAssignment struct {
	slot
	partition *partition
}

var (
	_ push.Unrepeatable = spreadAssignment{}
	_ push.Referrer     = spreadAssignment{}
)

type spreadSlot struct{ slot }

// Slot implements [push.Subject].
func (a spreadAssignment) Slot() any { return spreadSlot{a.slot} }

// Refers implements [push.Referrer].
func (a spreadAssignment) Refers(to string) iter.Seq[string] {
	if to != wire.MemberURL {
		return nothing
	}
	return func(yield func(string) bool) {
		for _, g := range a.partition.groups {
			if !yield(g.Collection) {
				return
			}
		}
	}
}

// Encode implements [push.Subject].
func (a spreadAssignment) Encode() push.Encoded { return a.encode(0) }

// times counts the assignments that were sent.
var times atomic.Int64

// EncodeOnce implements [push.Unrepeatable]. Envoy keeps its subscription to a
// collection through another assignment that names it in the same way, and then reads
// the assignment before, which it has freed. So no two name one in the same way: the
// time limit of each, which never ends, is another.
func (a spreadAssignment) EncodeOnce() push.Encoded {
	e := a.encode(time.Duration(times.Add(1)))
	e.Version = a.Encode().Version
	return e
}

// never is a time limit that does not end. To wait is right: the collections that an
// assignment names are there, or another assignment is on its way.
const never = 365 * 24 * time.Hour

func (a spreadAssignment) encode(time time.Duration) push.Encoded {
	m := &wire.Collections{Name: a.clusterName(), Groups: a.partition.groups}
	return encode(m.Name, wire.EndpointURL, m.Message(never+time))
}
