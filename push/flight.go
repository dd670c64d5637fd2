package push

import (
	"maps"
	"slices"
	"time"
)

// flight is a response that was not answered.
type flight struct {
	serial  uint64
	version Version   // of all that the subscriber holds with it
	brought int       // names that were new in it
	step    uint64    // up to which it carries everything; 0 if it does not
	since   time.Time // commit of its oldest change
	waits   time.Time // since when an answer is awaited, to it or to one before it
	sentAt  time.Time // zero until the transport has taken it
	overdue bool
	behind  waiters // names of other types that wait for the answer
}

// newest is the flight that the next response of the type waits for; nil if
// everything was answered.
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

// carried returns those that wait for the answer to the response that a name is in;
// nil if it is in none that is waited for. That may be one in the making: a full set may
// take several turns.
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

// maxFlights bounds the responses whose ACK is awaited.
const maxFlights = 8

// launch notes that a response is on its way. Those before it may still be
// answered. Beyond the bound the oldest is dropped, with the removals it brought,
// which have no bound of their own. Its resources still name it by their serial.
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

// cross notes a name that is dropped while a response that brought it is
// unanswered. That response may arrive when the subscriber asks for the name again.
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

// meet has a name looked at that is asked for again before such a response was
// answered. The subscriber may have a version from it that is gone by now.
func (i *interest) meet(name string) {
	if _, crossed := i.crossed[name]; !crossed || i.holding(name) != nil {
		return
	}
	delete(i.crossed, name)
	i.resume(name, Version{})
	i.unsure(i.holding(name))
	i.want(name, pending{})
}

// land returns the response that an answer is for; nil if there is none. Answers
// come in the order of the responses, so neither that response nor those before it
// are awaited any longer.
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

// cover notes that everything up to a step was sent, with the newest response or
// before it. While names wait, a change before that step may not have been sent, unless
// a NACK keeps it back.
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
