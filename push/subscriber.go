package push

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/events"
	"github.com/isthmus-mesh/isthmus/push/index"
	"github.com/isthmus-mesh/isthmus/push/queue"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Info identifies a subscriber for people.
type Info struct {
	ID       string
	Protocol string // "xds-sotw", "xds-delta"
	Identity string // proven by certificate, or claimed
	Proven   bool
	Since    time.Time
	// Budget names the budget of [Holdings] that the subscriber's names count against, such as
	// a proven identity or an address. If it is empty, they count against the total alone.
	Budget string
	// Ignored lists the client's invalid self-descriptions, and how to write them; empty if
	// all are valid.
	Ignored string
}

// claim describes the identity, for an event.
func (i *Info) claim() string {
	switch {
	case i.Identity == "":
		return ""
	case i.Proven:
		return " as " + i.Identity
	}
	return " as " + i.Identity + " (not proven)"
}

// Subscriber is one stream of one client. Its methods may be called from any
// goroutine.
type Subscriber struct {
	Info Info

	engine *core
	client world.Client
	out    chan *session.Response
	place  queue.Place[*Subscriber]

	failed  atomic.Bool // to be ended, after an internal fault
	recheck atomic.Bool // names that were not found are now known not to exist
	review  atomic.Bool // the client's view may have changed
	delayed atomic.Bool // pending names may wait for changes that a debounce delays

	mu     sync.Mutex
	types  []*interest // by type; nil for types that were not asked for
	asked  int         // how many types were asked for
	stream *session.Stream
	taken  int64 // bytes of its budget
	closed bool
	viewed bool // there is room for its view
	// patience fires when the first of the responses in flight is overdue. One timer serves
	// all responses and is set again while any is left. Nearly all are answered long before,
	// so that a timer for each would be wasted.
	patience *time.Timer
	watched  bool // the timer runs
}

// MaxTypes bounds the types that one subscriber may ask for.
const MaxTypes = 64

// Admit takes room for the views that the client's self-description creates. It returns
// [ErrViews] if there is none. It is called once, before the first request.
func (s *Subscriber) Admit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.viewed {
		return nil
	}
	err := s.engine.holdings.enter(outlookOf(s.client), s.Info)
	s.viewed = err == nil
	return err
}

// Out delivers the responses to send, in order. [Subscriber.Close] closes it. After handing
// a response to the transport the reader calls [Subscriber.Sent].
func (s *Subscriber) Out() <-chan *session.Response { return s.out }

// Close ends the subscriber and releases its resources and its room.
func (s *Subscriber) Close() {
	if s.close() {
		s.engine.config.Events.Add(events.Left, s.Info.ID, "after "+max(time.Since(s.Info.Since), 0).Round(time.Millisecond).String())
	}
}

// close reports whether the subscriber was open.
func (s *Subscriber) close() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.closed = true
	close(s.out)
	for i := range s.interests {
		s.engine.index.Remove(&i.Entry, i.state.AllNamed)
		s.engine.index.Leave(&i.Entry)
	}
	if s.patience != nil {
		s.patience.Stop()
	}
	_ = s.engine.holdings.take(s.Info.Budget, -s.taken) // giving back never fails
	if s.viewed {
		s.engine.holdings.leave(outlookOf(s.client), s.Info)
	}
	s.engine.mu.Lock()
	delete(s.engine.subscribers, s)
	s.engine.mu.Unlock()
	return true
}

// interest returns the state of a type; nil if it was not asked for.
func (s *Subscriber) interest(t world.Type) *interest {
	if int(t) >= len(s.types) {
		return nil
	}
	return s.types[t]
}

// interests yields the types that were asked for, in their order.
func (s *Subscriber) interests(yield func(*interest) bool) {
	for _, i := range s.types {
		if i != nil && !yield(i) {
			return
		}
	}
}

// begin starts the interest in a type.
func (s *Subscriber) begin(t world.Type, m world.Mode) *interest {
	if n := int(t) + 1; n > len(s.types) {
		s.types = append(s.types, make([]*interest, n-len(s.types))...)
	}
	table, now := s.engine.table.Load(), time.Now()
	types := table.Types
	table.types[t].counts.asked.Store(true)
	i := &interest{subscriber: s, state: s.stream.Begin(types, t, m, now)}
	i.Entry = index.Entry[*interest]{Owner: i, Type: t, Audience: types.All[t].AudienceOf(s.client)}
	s.types[t] = i
	s.asked++
	s.review.Store(true)
	s.engine.index.Join(&i.Entry, m)
	return i
}

// Sent records that the transport has taken a response: from now on its answer is awaited.
func (s *Subscriber) Sent(r *session.Response) {
	now := time.Now()
	if sent := s.engine.config.Sent; sent != nil && !r.Since.IsZero() {
		sent(r.Type, now.Sub(r.Since))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && s.types[r.Type].state.Sent(r.Serial, now) {
		s.watch(s.engine.config.Patience)
	}
}

// watch schedules a check of the responses in flight, unless a check is due already.
func (s *Subscriber) watch(in time.Duration) {
	switch {
	case s.watched:
		return
	case s.patience == nil:
		s.patience = time.AfterFunc(in, s.lookForOverdue)
	default:
		s.patience.Reset(in)
	}
	s.watched = true
}

// lookForOverdue stops waiting for overdue answers, so that the newest resources may be
// sent.
func (s *Subscriber) lookForOverdue() {
	if turn, urgent := s.giveUp(); turn {
		s.engine.queue.Add(&s.place, urgent)
	}
}

func (s *Subscriber) giveUp() (turn, urgent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched = false
	if s.closed {
		return false, false
	}
	soonest := time.Duration(0) // time until the next response is overdue; 0 if none will be
	now := time.Now()
	for i := range s.interests {
		left, gaveUp := i.state.GiveUp(s.engine.config.Patience, now)
		if left > 0 {
			soonest = min(cmp.Or(soonest, left), left)
		}
		if gaveUp {
			more, hurry := s.unblocked(i)
			turn, urgent = turn || more, urgent || hurry
		}
	}
	if soonest > 0 {
		s.watch(soonest)
	}
	return turn, urgent
}

// unblocked records that a type need not wait any longer. It reports whether the subscriber
// needs a turn, and whether that is urgent. Names that were marked meanwhile count for this
// type only, because the dispatcher requests a turn when it marks others.
func (s *Subscriber) unblocked(i *interest) (turn, urgent bool) {
	turn, urgent = s.stream.Needs()
	marked, hurry := i.marks.unblock()
	return turn || marked, urgent || hurry
}

// charge takes the cost of names from the subscriber's budget, or gives it back.
func (s *Subscriber) charge(names []string, sign int64) error {
	cost := int64(0)
	for _, name := range names {
		cost += int64(len(name)) + nameCost
	}
	if cost == 0 {
		return nil
	}
	if err := s.engine.holdings.take(s.Info.Budget, sign*cost); err != nil {
		return err
	}
	s.taken += sign * cost
	return nil
}

// fail ends the subscriber because of an internal fault. A worker ends it, because the
// dispatcher waits for no subscriber's lock.
func (s *Subscriber) fail() {
	s.failed.Store(true)
	s.engine.queue.Add(&s.place, true)
}

// Failed reports whether the subscriber was ended by an internal fault, such as a panic.
// Its subscriptions are gone; its client should reconnect.
func (s *Subscriber) Failed() bool { return s.failed.Load() }
