package session

import (
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// unanswered is a response without an answer yet.
type unanswered struct {
	serial  uint64
	version world.Version // of everything that the client holds with it
	brought int           // number of names that were new in it
	step    uint64        // the step up to which it carries everything; 0 if incomplete
	since   time.Time     // commit of its oldest change
	waits   time.Time     // since when the answer to it or to an earlier one is awaited
	sentAt  time.Time     // zero until the transport has taken it
	overdue bool
	behind  waiters // names of other types that wait for the answer
}

// opening is the response in the making. A response of a full type may take several turns.
type opening struct {
	serial  uint64 // reserved serial; 0 if none is
	brought int    // number of new names in it
	since   time.Time
	due     bool                // sent even without content
	asked   bool                // a full set is sent even if it equals the last one
	before  map[string]holding  // names that a full set changes, as the client has them; free if it has none
	brings  map[string]bringing // new resources of a full set; nil for other types
	behind  waiters             // names of other types that wait for its answer
}

// bringing is a resource of a full set in the making that may bring others.
type bringing struct {
	subject world.Subject
	p       Pending
}

// inFlight is the responses of a type that are in the making or unanswered.
type inFlight struct {
	open       opening
	unanswered []*unanswered     // the responses that may still be answered, oldest first
	removed    map[string]uint64 // names removed in them, by the serial of the response
	crossed    map[string]uint64 // names in them that were dropped since, likewise
	landed     uint64            // serial of the newest response that was answered
	settled    uint64            // the step up to which everything was sent and answered
}

// MaxInFlight bounds the unanswered responses.
const MaxInFlight = 8

// newest returns the response that the next one of the type waits for; nil if everything
// was answered.
func (f *inFlight) newest() *unanswered {
	if len(f.unanswered) == 0 {
		return nil
	}
	return f.unanswered[len(f.unanswered)-1]
}

// Awaits reports whether a response is unanswered.
func (f *inFlight) Awaits() bool { return f.newest() != nil }

// Blocks reports whether the next response of the type has to wait.
func (f *inFlight) Blocks() bool {
	r := f.newest()
	return r != nil && !r.overdue
}

// opened reports whether the response in the making brings the holding.
func (f *inFlight) opened(h *holding) bool {
	return f.open.serial != 0 && h.serial == serialOf(f.open.serial)
}

// awaited returns the waiters for the answer to a response; nil if it is not awaited. The
// response may be still in the making: a full set may take several turns.
func (f *inFlight) awaited(by uint64) *waiters {
	switch {
	case by == 0:
		return nil
	case f.open.serial != 0 && serialOf(by) == serialOf(f.open.serial):
		return &f.open.behind
	case f.Blocks() && serialOf(by) == serialOf(f.newest().serial):
		return &f.newest().behind
	default:
		return nil
	}
}

// of returns the unanswered response with a serial; nil if it was answered.
func (f *inFlight) of(by uint64) *unanswered {
	for _, r := range f.unanswered {
		if serialOf(r.serial) == serialOf(by) {
			return r
		}
	}
	return nil
}

// index returns the place of an unanswered response; -1 if it was answered.
func (f *inFlight) index(by uint64) int {
	return slices.IndexFunc(f.unanswered, func(r *unanswered) bool { return r.serial == by })
}

// launch records that a response is on its way. Earlier ones may still be answered. Beyond
// the bound the oldest is dropped, together with the record of its removals, which has no
// bound of its own. Its resources still name it by their serial.
func (f *inFlight) launch(r *unanswered) {
	f.open = opening{}
	f.unanswered = append(f.unanswered, r)
	if len(f.unanswered) <= MaxInFlight {
		return
	}
	first := f.unanswered[0]
	f.unanswered = slices.Delete(f.unanswered, 0, 1)
	f.unanswered[0].waits = first.waits
	f.dropUpTo(first.serial)
}

// land returns the response that an answer is for; nil if there is none. Answers come in
// the order of the responses. After an answer, that response and all earlier ones are no
// longer awaited.
func (f *inFlight) land(by uint64) *unanswered {
	at := f.index(by)
	if at < 0 {
		return nil
	}
	r := f.unanswered[at]
	f.unanswered = slices.Delete(f.unanswered, 0, at+1)
	f.landed = by
	if len(f.unanswered) == 0 {
		f.removed, f.crossed = nil, nil
	} else {
		f.dropUpTo(by)
	}
	return r
}

// dropUpTo forgets the names of responses up to a serial.
func (f *inFlight) dropUpTo(last uint64) {
	maps.DeleteFunc(f.removed, func(_ string, by uint64) bool { return by <= last })
	maps.DeleteFunc(f.crossed, func(_ string, by uint64) bool { return by <= last })
}

// remove records that the response in the making removes a name.
func (f *inFlight) remove(name string) {
	if f.removed == nil {
		f.removed = map[string]uint64{}
	}
	f.removed[name] = f.open.serial
}

// cross records a name that is dropped while a response with it is unanswered. That
// response may arrive when the client asks for the name again.
func (f *inFlight) cross(name string, h *holding) {
	for _, r := range f.unanswered {
		if h.serial != serialOf(r.serial) {
			continue
		}
		if f.crossed == nil {
			f.crossed = map[string]uint64{}
		}
		f.crossed[name] = r.serial
	}
}

// settle records that everything up to a step was sent and answered, and reports whether
// that is further than before.
func (f *inFlight) settle(step uint64) bool {
	if step <= f.settled {
		return false
	}
	f.settled = step
	return true
}

// cover records that everything up to a step was sent, with the newest response or before
// it. It reports whether more is settled by that.
func (f *inFlight) cover(step uint64) bool {
	if r := f.newest(); r != nil && !r.overdue {
		r.step = max(r.step, step)
		return false
	}
	return f.settle(step)
}

// reason returns why there is no answer yet, for display.
func (r *unanswered) reason() string {
	switch {
	case r.sentAt.IsZero():
		return "the client does not read: the response is not on the wire yet"
	case r.overdue:
		return "the client has not answered in time; the newest is sent when something changes"
	default:
		return "the client has not answered yet"
	}
}
