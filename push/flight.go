package push

import (
	"maps"
	"slices"
	"time"
)

// flight is an unanswered response.
type flight struct {
	serial  uint64
	version Version   // of everything that the subscriber holds with it
	brought int       // number of names that were new in it
	step    uint64    // the step up to which it carries everything; 0 if incomplete
	since   time.Time // commit of its oldest change
	waits   time.Time // since when the answer to it or to an earlier one is awaited
	sentAt  time.Time // zero until the transport has taken it
	overdue bool
	behind  waiters // names of other types that wait for the answer
}

// newest returns the flight that the next response of the type waits for; nil if everything
// was answered.
func (i *interest) newest() *flight {
	if len(i.flights) == 0 {
		return nil
	}
	return i.flights[len(i.flights)-1]
}

// blocks reports whether the next response of the type has to wait.
func (i *interest) blocks() bool {
	f := i.newest()
	return f != nil && !f.overdue
}

// carried returns the waiters for the answer to the response that contains a name. It
// returns nil if no awaited response contains it. The response may be still in the making:
// a full set may take several turns.
func (i *interest) carried(name string) *waiters {
	if !i.blocks() && i.open.serial == 0 {
		return nil
	}
	by := i.removed[name]
	if h := i.holding(name); h != nil {
		by = uint64(h.serial)
	}
	switch {
	case by == 0:
		return nil
	case i.open.serial != 0 && serialOf(by) == serialOf(i.open.serial):
		return &i.open.behind
	case i.blocks() && serialOf(by) == serialOf(i.newest().serial):
		return &i.newest().behind
	default:
		return nil
	}
}

// maxFlights bounds the unanswered responses.
const maxFlights = 8

// launch records that a response is on its way. Earlier ones may still be answered. Beyond
// the bound the oldest is dropped, together with the record of its removals, which has no
// bound of its own. Its resources still name it by their serial.
func (i *interest) launch(f *flight) {
	i.flights = append(i.flights, f)
	if len(i.flights) <= maxFlights {
		return
	}
	first := i.flights[0]
	i.flights = slices.Delete(i.flights, 0, 1)
	i.flights[0].waits = first.waits
	maps.DeleteFunc(i.removed, func(_ string, serial uint64) bool { return serial <= first.serial })
	maps.DeleteFunc(i.crossed, func(_ string, serial uint64) bool { return serial <= first.serial })
}

// cross records a name that is dropped while a response with it is unanswered. That
// response may arrive when the subscriber asks for the name again.
func (i *interest) cross(name string) {
	h := i.holding(name)
	if h == nil || i.mode != Delta {
		return
	}
	for _, f := range i.flights {
		if h.serial == serialOf(f.serial) {
			if i.crossed == nil {
				i.crossed = map[string]uint64{}
			}
			i.crossed[name] = f.serial
		}
	}
}

// meet makes a name pending that is requested again before such a response was answered.
// The subscriber may have an outdated version from that response.
func (i *interest) meet(name string) {
	if _, crossed := i.crossed[name]; !crossed || i.holding(name) != nil {
		return
	}
	delete(i.crossed, name)
	i.resume(name, Version{})
	i.unsure(i.holding(name))
	i.want(name, pending{})
}

// land returns the response that an answer is for; nil if there is none. Answers come in
// the order of the responses. After an answer, that response and all earlier ones are no
// longer awaited.
func (i *interest) land(serial uint64) *flight {
	at := slices.IndexFunc(i.flights, func(f *flight) bool { return f.serial == serial })
	if at < 0 {
		return nil
	}
	f := i.flights[at]
	i.flights = slices.Delete(i.flights, 0, at+1)
	i.landed = serial
	f.behind.rouse()
	i.settle(f.step)
	if len(i.flights) == 0 {
		i.removed, i.crossed = nil, nil
	} else {
		maps.DeleteFunc(i.removed, func(_ string, by uint64) bool { return by <= serial })
		maps.DeleteFunc(i.crossed, func(_ string, by uint64) bool { return by <= serial })
	}
	return f
}

// cover records that everything up to a step was sent, with the newest response or before
// it. While names wait, a change before that step may not have been sent, unless a NACK
// holds it back.
func (i *interest) cover(step uint64) {
	if i.waits.keeping > 0 {
		return
	}
	i.covered = max(i.covered, step)
	if f := i.newest(); f != nil && !f.overdue {
		f.step = max(f.step, step)
		return
	}
	i.settle(step)
}
