package push

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Info says who a subscriber is, for people.
type Info struct {
	ID       string
	Protocol string // "xds-sotw", "xds-delta"
	Identity string // proven by certificate, or claimed
	Proven   bool
	Since    time.Time
	// Budget says which budget of [Holdings] the subscriber's names count against,
	// such as a proven identity or an address. If it is empty, they count against the
	// total alone.
	Budget string
	// Ignored says which of the client's words about itself are not valid, and how to write
	// them; empty if all are.
	Ignored string
}

// Subscriber is one stream of one client. Its methods may be called from any
// goroutine.
type Subscriber struct {
	Info Info

	engine *Engine
	client Client
	out    chan *Response
	place  place // guarded by the queue

	failed  atomic.Bool // it is to be ended, by a fault of ours
	recheck atomic.Bool // names that were not found are now known not to exist
	review  atomic.Bool // the client may see something else now
	delayed atomic.Bool // something is pending, and may wait for changes that a debounce keeps back

	mu     sync.Mutex
	types  []*interest // by type; nil for those that were not asked for
	asked  int         // how many types were asked for
	serial uint64
	taken  int64 // bytes of its budget
	closed bool
	viewed bool // there is room for its view
	// patience fires when the first of the responses on their way is overdue. One
	// timer serves all of them and is set again while any is left. Nearly all are
	// answered long before, so that a timer for each would be wasted.
	patience *time.Timer
	watched  bool // the timer runs
}

// Response is a message to a subscriber.
type Response struct {
	Type Type
	Mode Mode
	// Serial is unique within the subscriber; an answer names it.
	Serial uint64
	// Version is a hash of everything of the type that the subscriber holds
	// once it has applied the response.
	Version   Version
	Resources []*Resource
	Removed   []string // for Delta subscribers
	// First says that the response is of the first state, and Ends that nothing of that
	// is left. Both are only for a subscriber with [Request].MarkFirst. A response that
	// ends it may have no content.
	First, Ends bool

	since time.Time // commit of its oldest change; zero if unknown
}

// MaxTypes is how many types one subscriber may ask for.
const MaxTypes = 64

// Connect enters a subscriber. It returns nil once the engine has stopped.
func (e *Engine) Connect(info Info, client Client) *Subscriber {
	s := &Subscriber{
		Info: info, engine: e, client: client,
		// A type has at most one response that was not yet handed to the
		// transport, so a worker that puts one in never blocks.
		out: make(chan *Response, MaxTypes),
	}
	// Its first turn works out its views. From here on, a world in which it has
	// another view asks for that again.
	s.review.Store(true)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return nil
	}
	e.subscribers[s] = struct{}{}
	return s
}

// Admit takes room for what the subscriber makes up by what it says of itself. It returns
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

// Out delivers the responses to send, in order. It is closed by [Subscriber.Close].
// After handing one to the transport the reader calls [Subscriber.Sent].
func (s *Subscriber) Out() <-chan *Response { return s.out }

// Close ends the subscriber and releases all that it held.
func (s *Subscriber) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	close(s.out)
	for i := range s.interests {
		s.engine.index.remove(i, i.allNamed)
		s.engine.index.leave(i)
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
}

// interest is what is known of a type; nil if it was not asked for.
func (s *Subscriber) interest(t Type) *interest {
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

// begin enters the interest in a type.
func (s *Subscriber) begin(t Type, m Mode) *interest {
	if n := int(t) + 1; n > len(s.types) {
		s.types = append(s.types, make([]*interest, n-len(s.types))...)
	}
	i := newInterest(s, t, s.engine.table.Load().types[t], m)
	s.types[t] = i
	s.asked++
	s.review.Store(true)
	s.engine.index.join(i)
	return i
}

// Sent says that the transport has taken a response: from now on its answer is
// awaited.
func (s *Subscriber) Sent(r *Response) {
	if sent := s.engine.config.Sent; sent != nil && !r.since.IsZero() {
		sent(r.Type, time.Since(r.since))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	f := s.types[r.Type].newest()
	if f == nil || f.serial != r.Serial {
		return
	}
	f.sentAt = time.Now()
	s.watch(s.engine.config.Patience)
}

// watch has the responses on their way checked after a while, unless a check is due
// already.
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

// lookForOverdue gives up waiting for answers that should have come, so that the
// newest resources may be sent.
func (s *Subscriber) lookForOverdue() {
	if turn, urgent := s.giveUp(); turn {
		s.engine.queue.add(s, urgent)
	}
}

func (s *Subscriber) giveUp() (turn, urgent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched = false
	if s.closed {
		return false, false
	}
	soonest := time.Duration(0) // that another is overdue; 0 if none will be
	for i := range s.interests {
		f := i.newest()
		if f == nil || f.overdue || f.sentAt.IsZero() {
			continue
		}
		if left := s.engine.config.Patience - time.Since(f.sentAt); left > 0 {
			soonest = min(cmp.Or(soonest, left), left)
			continue
		}
		f.overdue = true
		f.behind.rouse()
		i.settle(f.step)
		more, hurry := s.unblocked(i)
		turn, urgent = turn || more, urgent || hurry
	}
	if soonest > 0 {
		s.watch(soonest)
	}
	return turn, urgent
}

// unblocked notes that a type need not wait any longer. It reports whether the
// subscriber needs a turn, and whether that is urgent.
func (s *Subscriber) unblocked(i *interest) (turn, urgent bool) {
	turn, urgent = s.needs()
	marked, hurry := i.unblock()
	return turn || marked, urgent || hurry
}

// needs reports whether any type has something to send or to look at, and whether
// any of it is urgent. Names that were marked meanwhile do not count, because the
// dispatcher asks for a turn when it marks them. A removal may wait for a type that has
// nothing to send, which a turn finds out.
func (s *Subscriber) needs() (turn, urgent bool) {
	for i := range s.interests {
		turn = turn || !i.rests() || len(i.waits.steps) > 0
		urgent = urgent || i.urgent && len(i.pending) > 0
	}
	return turn, urgent
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

// without returns the names for which no is false. The list is not written to.
func without(names []string, no func(string) bool) []string {
	if !slices.ContainsFunc(names, no) {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), no)
}
