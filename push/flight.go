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
	since   time.Time // commit of its oldest change
	waits   time.Time // since when an answer is awaited, to it or to one before it
	sentAt  time.Time // zero until the transport has taken it
	overdue bool
	timer   *time.Timer
}

func (f *flight) stop() {
	if f != nil && f.timer != nil {
		f.timer.Stop()
	}
}

// newest is the flight that the next response of the type waits for; nil if
// everything was answered.
func (st *state) newest() *flight {
	if len(st.flights) == 0 {
		return nil
	}
	return st.flights[len(st.flights)-1]
}

// blocks reports whether the next response of the type has to wait.
func (st *state) blocks() bool {
	f := st.newest()
	return f != nil && !f.overdue
}

// maxFlights bounds the responses whose acceptance is awaited.
const maxFlights = 8

// launch notes that a response is on its way. Those before it may still be
// answered. Of one that is too long ago only its resources are remembered, not
// its removals: of those there is no end.
func (st *state) launch(f *flight) {
	st.newest().stop()
	st.flights = append(st.flights, f)
	if len(st.flights) <= maxFlights {
		return
	}
	first := st.flights[0]
	st.flights = slices.Delete(st.flights, 0, 1)
	st.flights[0].waits = first.waits
	maps.DeleteFunc(st.aloft, func(name string, serial uint64) bool {
		_, has := st.held[name]
		return serial <= first.serial && !has
	})
}

// land returns the response that an answer is for, which is then no longer
// awaited, nor are those before it; nil if there is none. Answers come in the
// order of the responses.
func (st *state) land(serial uint64) *flight {
	at := slices.IndexFunc(st.flights, func(f *flight) bool { return f.serial == serial })
	if at < 0 {
		return nil
	}
	f := st.flights[at]
	f.stop()
	st.flights = slices.Delete(st.flights, 0, at+1)
	if len(st.flights) == 0 {
		st.aloft = nil
	} else {
		maps.DeleteFunc(st.aloft, func(_ string, by uint64) bool { return by <= serial })
	}
	return f
}
