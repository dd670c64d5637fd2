package push

import (
	"slices"
	"time"
)

// interest is what the engine knows of one subscriber and one type. It begins
// with the first request for the type.
type interest struct {
	subscriber *Subscriber
	t          Type
	mode       Mode
	full       bool // every response is the whole set
	audience   []string
	view       *sharedView // guarded by the index; nil until the first turn
	marks      marks       // have a lock of their own

	// The rest is guarded by the subscriber's lock.
	wildcard bool
	// names are all that the subscriber asks for or has. Nil stands for a name that
	// it asks for and of which there is nothing else to know: a stranger's name
	// costs no more than that.
	names  map[string]*holding
	asked  int                  // names it asks for
	held   int                  // resources it has
	set    map[string]*Resource // these, for full types
	listed uint64               // digest of the names as last listed in full; 0 if they were not
	sum    Version              // of what it has

	fresh    []batch             // names to look at that were asked for in great numbers
	pending  map[string]pending  // names to look at
	crowded  bool                // pending once held many
	urgent   bool                // a pending name may be urgent
	expand   bool                // the wildcard's names, too
	answer   bool                // the first request awaits a response, were it empty
	claim    *Version            // what the subscriber says it holds already
	resumes  bool                // its first request said what it holds
	guard    bool                // it is sent nothing, lest that takes something from it
	unproven map[string]struct{} // not found while some source was not listed yet

	nacked  map[string]nack // names whose newest response was NACKed
	again   int             // how many of them are to be tried again
	retried bool            // the response before carried such

	open    opening
	flights []*flight         // the responses that may still be answered, oldest first
	removed map[string]uint64 // names removed in them, by the serial of the response
	landed  uint64            // serial of the newest response that was answered
	covered uint64            // the step up to which everything was sent
	settled uint64            // and up to which that was answered as well
	record  history
}

// holding is a name that the subscriber has, or may have. There is one for each
// resource of each stream, so it is small.
type holding struct {
	member member
	serial serial // of the response that brought it; 0 if none did on this stream, or it was NACKed
	named  bool   // it is asked for by name
	has    bool
	sent   bool // on this stream
	// unknown is set, and there is no version, when the subscriber NACKed the
	// response it came in: it may or may not have taken it.
	unknown bool
	// resumed is set while the subscriber's own word is all we have for it.
	resumed bool
}

// serial is what is kept of a response's number with each name that it brought:
// enough to tell those apart that may still be answered.
type serial uint32

func serialOf(n uint64) serial { return serial(n) } //nolint:gosec // see above

// opening is the response in the making. That of a full type may take several turns.
type opening struct {
	serial  uint64 // reserved for it; 0 if none is
	brought int    // names that are new in it
	since   time.Time
	due     bool // it is sent even without content
}

// batch is names as a request listed them. They become pending a turn's worth at
// a time, for a map of all of them would cost several times what they do.
type batch struct {
	names []string
	again bool // they are sent even if the subscriber has them
}

// pending is why a name is to be looked at.
type pending struct {
	// force sends the resource even if the subscriber has it: it asked again,
	// or something else demands it.
	force   bool
	urgent  bool      // as in [Changed]
	revoked bool      // likewise
	nacked  bool      // what it needs was NACKed, or waits for what was
	since   time.Time // commit of the oldest change not sent yet; zero if unknown
	step    uint64    // at which it was found gone; 0 if it was not
	kept    uint64    // the first step of which it may be, while it has to wait for others; else 0
}

// and joins two reasons.
func (p pending) and(o pending) pending {
	return pending{p.force || o.force, p.urgent || o.urgent, p.revoked || o.revoked, p.nacked, oldest(p.since, o.since), p.step, p.kept}
}

func newInterest(s *Subscriber, t Type, info *typeInfo, m Mode) *interest {
	return &interest{
		subscriber: s, t: t, mode: m, full: info.Whole && m == WholeState, audience: info.audience(s.client),
		names: map[string]*holding{}, record: history{since: time.Now()},
	}
}

// holding returns what the subscriber has of a name; nil if nothing.
func (i *interest) holding(name string) *holding {
	if h := i.names[name]; h != nil && h.has {
		return h
	}
	return nil
}

// named reports whether the subscriber asks for the name itself.
func (i *interest) named(name string) bool {
	h, known := i.names[name]
	return known && (h == nil || h.named)
}

// subscribed reports whether the subscriber wants the name.
func (i *interest) subscribed(name string) bool { return i.wildcard || i.named(name) }

// allNamed yields the names that the subscriber asks for.
func (i *interest) allNamed(yield func(string) bool) {
	for name, h := range i.names {
		if (h == nil || h.named) && !yield(name) {
			return
		}
	}
}

// allHeld yields what the subscriber has.
func (i *interest) allHeld(yield func(string, *holding) bool) {
	for name, h := range i.names {
		if h != nil && h.has && !yield(name, h) {
			return
		}
	}
}

// ask notes that a name is asked for, and drop that it is not any more. Ask
// reports whether that is new.
func (i *interest) ask(name string) bool {
	h, known := i.names[name]
	switch {
	case !known:
		i.names[name] = nil
	case h == nil || h.named:
		return false
	default:
		h.named = true
	}
	i.asked++
	return true
}

func (i *interest) drop(name string) {
	h := i.names[name]
	if h == nil {
		delete(i.names, name)
	} else {
		h.named = false
	}
	i.asked--
}

// rests reports whether there is nothing to send and nothing to look at.
func (i *interest) rests() bool {
	return len(i.pending) == 0 && len(i.fresh) == 0 && !i.expand && !i.answer && i.again == 0 && !i.open.due
}

// want puts a name on the list of those to look at.
func (i *interest) want(name string, p pending) {
	if i.pending == nil {
		i.pending = map[string]pending{}
	}
	if was, ok := i.pending[name]; ok {
		p = was.and(p)
	}
	i.pending[name] = p
	i.urgent = i.urgent || p.urgent
	i.crowded = i.crowded || len(i.pending) > few
}

// turnNames bounds the names that one turn of a worker looks at for a type, so
// that a subscriber with very many keeps nobody from theirs.
const turnNames = 4096

// order lists the pending names that this turn looks at, those that are urgent
// first. Whether there are more is told beside.
func (i *interest) order() (names []string, more bool) {
	i.unpack()
	names = make([]string, 0, min(len(i.pending), turnNames))
	if i.urgent {
		for name, p := range i.pending {
			if p.urgent && len(names) < turnNames {
				names = append(names, name)
			}
		}
		slices.Sort(names)
	}
	first := len(names)
	for name, p := range i.pending {
		if len(names) == turnNames {
			break
		}
		if !p.urgent || !i.urgent {
			names = append(names, name)
		}
	}
	slices.Sort(names[first:])
	return names, len(i.pending) > len(names) || len(i.fresh) > 0
}

// wantAll has all of some names looked at that a request lists.
func (i *interest) wantAll(b batch) {
	if len(b.names) > few {
		i.fresh = append(i.fresh, b)
		return
	}
	for _, name := range b.names {
		i.want(name, pending{force: b.again})
	}
}

// unpack makes names of batches pending, as many as a turn looks at.
func (i *interest) unpack() {
	for len(i.fresh) > 0 && len(i.pending) < turnNames {
		b := &i.fresh[0]
		n := min(len(b.names), turnNames-len(i.pending))
		for _, name := range b.names[:n] {
			if i.subscribed(name) || i.holding(name) != nil { // else it was dropped since
				i.want(name, pending{force: b.again})
			}
		}
		if b.names = b.names[n:]; len(b.names) == 0 {
			i.fresh = i.fresh[1:]
		}
	}
	if len(i.fresh) == 0 {
		i.fresh = nil
	}
}

// waiting is how many names are to be looked at.
func (i *interest) waiting() int {
	n := len(i.pending)
	for _, b := range i.fresh {
		n += len(b.names)
	}
	return n
}

// trim drops names that changed while the wildcard's response goes unanswered,
// if they are more than the subscriber holds: what is left of those that came
// and went will be found by asking the world.
func (i *interest) trim() {
	if !i.wildcard || !i.blocks() || len(i.pending) <= len(i.names)+tooMany {
		return
	}
	for name, p := range i.pending {
		if _, known := i.names[name]; !known && !p.force {
			delete(i.pending, name)
		}
	}
	i.expand = true
}

// few names may be pending at all times; room for more is given back.
const few = 32

// shrink gives back the room that a burst took once it is over. A map never
// shrinks, and to walk an empty one takes as long as to walk a full one: after
// it had been sent everything, a subscriber would pay for that ever after.
func (i *interest) shrink() {
	if i.crowded && len(i.pending) == 0 {
		i.pending, i.crowded = nil, false
	}
}

// hold notes that the subscriber has a resource. The name that is kept is the
// resource's own, which all streams share.
func (i *interest) hold(res *Resource, by uint64) {
	named := i.named(res.Name)
	h := i.names[res.Name]
	if h == nil {
		h = &holding{}
	}
	i.release(res.Name)
	*h = holding{member: res.member, serial: serialOf(by), named: named, has: true, sent: true}
	i.names[res.Name] = h
	if i.full {
		if i.set == nil {
			i.set = map[string]*Resource{}
		}
		i.set[res.Name] = res
	}
	i.held++
	i.sum = i.sum.plus(res.member)
}

// release notes that the subscriber has no such resource.
func (i *interest) release(name string) {
	h := i.holding(name)
	if h == nil {
		return
	}
	i.held--
	delete(i.set, name)
	i.sum = i.sum.minus(h.member)
	if h.named {
		i.names[name] = nil
	} else {
		delete(i.names, name)
	}
}

// unsure notes that the subscriber may have another version than it was sent.
func (i *interest) unsure(name string, h *holding) {
	unknown := memberOf(name, Version{})
	i.sum = i.sum.minus(h.member).plus(unknown)
	h.member, h.serial, h.unknown, h.resumed = unknown, 0, true, false
}

// resume notes what a subscriber says it has.
func (i *interest) resume(name string, v Version) {
	h := &holding{member: memberOf(name, v), named: i.named(name), has: true, resumed: true}
	i.names[name] = h
	i.held++
	i.sum = i.sum.plus(h.member)
}

// forget drops what is known of a name that is no longer subscribed: asked for
// again, it is sent again.
func (i *interest) forget(name string) {
	i.release(name)
	delete(i.pending, name)
	delete(i.unproven, name)
	delete(i.removed, name)
	i.pardon(name)
}

// forgetUnsubscribed does so for every name, after the wildcard has ended.
func (i *interest) forgetUnsubscribed() {
	var gone []string
	for name := range i.allHeld {
		gone = append(gone, name)
	}
	for name := range i.pending {
		gone = append(gone, name)
	}
	for name := range i.removed {
		gone = append(gone, name)
	}
	for name := range i.unproven {
		gone = append(gone, name)
	}
	for _, name := range gone {
		if !i.subscribed(name) {
			i.forget(name)
		}
	}
}
