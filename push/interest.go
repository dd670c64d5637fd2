package push

import (
	"hash/maphash"
	"math"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// interest is the state of one subscriber for one type. It begins with the first request
// for the type.
type interest struct {
	subscriber *Subscriber
	t          Type
	mode       Mode
	full       bool // every response is the whole set
	exclusive  bool // as in [TypeSpec]
	either     bool // takes increments as well as whole sets
	audience   []string
	view       *sharedView // guarded by the index; nil until the first turn
	number     number      // likewise
	marks      marks       // guarded by their own lock
	reviewed   uint64      // the step before which its view was last compared; only the dispatcher uses reviewed and moved
	moved      bool        // whether the view differed in that comparison

	// The subscriber's lock guards the following fields.
	wildcard bool
	held     heldSet // the resources that it holds
	lacks    nameSet // names that it asks for and holds no resource of
	asked    int     // number of names that it asks for
	listed   uint64  // digest of the names as last listed in full; 0 if they were not
	sum      Version // of the resources that it holds

	fresh    []batch             // long lists of requested names, not yet pending
	pending  map[string]pending  // names to consider in a turn
	waits    waits               // names that wait for an obstacle; none of them is pending
	behind   map[string]waiters  // waiting names of other types, by the name of this type
	crowded  bool                // pending once held many names
	urgent   bool                // a pending name may be urgent
	expand   bool                // the wildcard's names are still to be listed
	answer   bool                // the first request awaits a response, even an empty one
	claim    *Version            // the version that the subscriber claims to hold
	ours     bool                // this engine issued the claimed version, and the subscriber asks for no other names
	resumes  bool                // its first request listed the resources that it holds
	first    bool                // the mark that its first state is complete is still due
	guard    bool                // the subscriber is sent nothing yet, so that it keeps the resources that it holds
	withheld withheld            // why a resource or set cannot be sent; zero if nothing is withheld
	unproven map[string]struct{} // names not found while some source was not listed yet

	nacked  map[string]nack // names for which the newest response was NACKed
	again   int             // number of NACKed names to be retried
	retried bool            // the previous response retried some of them
	// otherwise is set when an exclusive type got an ACK after the last retry of the names
	// NACKed alone.
	otherwise bool

	open    opening
	flights []*flight         // the responses that may still be answered, oldest first
	removed map[string]uint64 // names removed in them, by the serial of the response
	crossed map[string]uint64 // names in flights that were dropped since, likewise
	landed  uint64            // serial of the newest response that was answered
	covered uint64            // the step up to which everything was sent
	settled uint64            // the step up to which everything was sent and answered
	record  history
}

// opening is the response in the making. A response of a full type may take several turns.
type opening struct {
	serial  uint64 // reserved serial; 0 if none is
	brought int    // number of new names in it
	since   time.Time
	due     bool                // sent even without content
	brings  map[string]bringing // new resources of a full set; nil for other types
	behind  waiters             // names of other types that wait for its answer
}

// opened reports whether the response in the making brings the holding.
func (i *interest) opened(h *holding) bool {
	return i.open.serial != 0 && h.serial == serialOf(i.open.serial)
}

// batch is a list of names as requested. They become pending a turn's worth at a time,
// because a map of all of them would take several times the memory.
type batch struct {
	names []string
	again bool // sent even if the subscriber has them
}

// pending is why a name is to be looked at.
type pending struct {
	// force sends the resource even if the subscriber has it: the subscriber asked again, or
	// NACKed it with others.
	force bool
	// brought sends the resource even if the subscriber has it: its client waits for it
	// together with the resource that brings it. A removal is not sent a second time for that.
	brought bool
	urgent  bool      // as in [Changed]
	revoked bool      // likewise
	nacked  bool      // a resource that it needs was NACKed, or itself waits for a NACKed one
	since   time.Time // commit of the oldest change not sent yet; zero if unknown
	step    uint64    // at which it was found gone; 0 if it exists
}

// again reports whether the resource is sent even if the subscriber has it.
func (p pending) again() bool { return p.force || p.brought }

// and joins two reasons.
func (p pending) and(o pending) pending {
	return pending{p.force || o.force, p.brought || o.brought, p.urgent || o.urgent, p.revoked || o.revoked, p.nacked, oldest(p.since, o.since), p.step}
}

func newInterest(s *Subscriber, t Type, info *typeInfo, m Mode) *interest {
	return &interest{
		subscriber: s, t: t, mode: m, full: info.Whole && m == WholeState, exclusive: info.Exclusive, audience: info.AudienceOf(s.client),
		record: history{since: time.Now()},
	}
}

// hash returns the hash of a name.
func (i *interest) hash(name string) uint64 {
	return maphash.String(i.subscriber.engine.reader.Seed(), name)
}

// holding returns the subscriber's holding of a name; nil if there is none. The pointer is
// valid until the next change of the held set.
func (i *interest) holding(name string) *holding {
	if i.held.n == 0 {
		return nil
	}
	return i.held.find(name, i.hash(name))
}

// named reports whether the subscriber asks for the name itself.
func (i *interest) named(name string) bool {
	if h := i.holding(name); h != nil {
		return h.named
	}
	return i.lacks.has(name)
}

// subscribed reports whether the subscriber wants the name.
func (i *interest) subscribed(name string) bool { return i.wildcard || i.named(name) }

// allNamed yields the names that the subscriber asks for.
func (i *interest) allNamed(yield func(string) bool) {
	for name := range i.lacks.names {
		if !yield(name) {
			return
		}
	}
	for h := range i.held.all {
		if h.named && !yield(h.Name) {
			return
		}
	}
}

// ask records that the subscriber asks for a name, and reports whether that is new. drop is
// the opposite.
func (i *interest) ask(name string) bool {
	h := i.holding(name)
	switch {
	case h == nil && i.lacks.has(name), h != nil && h.named:
		return false
	case h == nil:
		i.lacks.add(name)
	default:
		h.named = true
	}
	i.asked++
	return true
}

func (i *interest) drop(name string) {
	if h := i.holding(name); h != nil {
		h.named = false
	} else {
		i.lacks.remove(name)
	}
	i.asked--
}

// rests reports whether there is nothing to send and nothing to look at.
func (i *interest) rests() bool {
	return len(i.pending) == 0 && len(i.fresh) == 0 && !i.expand && !i.answer && i.again == 0 && !i.open.due && !i.first
}

// want makes a name pending. Names that wait for it are considered again, too: the name may
// no longer exist.
func (i *interest) want(name string, p pending) {
	if i.pending == nil {
		i.pending = map[string]pending{}
	}
	if was, ok := i.pending[name]; ok {
		p = was.and(p)
	} else if w, ok := i.waits.take(name); ok {
		p = w.and(p)
	}
	i.pending[name] = p
	i.urgent = i.urgent || p.urgent
	i.crowded = i.crowded || len(i.pending) > few
	i.stir(name)
}

// atOnce returns the number of names that a turn considers for a type.
func (e *Engine) atOnce(info *typeInfo) int {
	if info.Together {
		return math.MaxInt
	}
	return e.config.Turn
}

// order lists at most so many pending names for this turn, the urgent ones first.
func (i *interest) order(most int) (names []string) {
	i.unpack(most)
	names = make([]string, 0, min(len(i.pending), most))
	if i.urgent {
		for name, p := range i.pending {
			if p.urgent && len(names) < most {
				names = append(names, name)
			}
		}
		slices.Sort(names)
	}
	first := len(names)
	for name, p := range i.pending {
		if len(names) == most {
			break
		}
		if !p.urgent || !i.urgent {
			names = append(names, name)
		}
	}
	slices.Sort(names[first:])
	return names
}

// wantAll queues the names that a request lists.
func (i *interest) wantAll(b batch) {
	if len(b.names) > few {
		i.fresh = append(i.fresh, b)
		return
	}
	for _, name := range b.names {
		i.want(name, pending{force: b.again})
	}
}

// unpack makes names of batches pending, up to the names of a turn.
func (i *interest) unpack(most int) {
	for len(i.fresh) > 0 && len(i.pending) < most {
		b := &i.fresh[0]
		n := min(len(b.names), most-len(i.pending))
		for _, name := range b.names[:n] {
			if i.subscribed(name) || i.holding(name) != nil { // otherwise it was dropped meanwhile
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

// ready reports whether a turn would consider or retry any name.
func (i *interest) ready() bool {
	return i.view != nil && (i.waiting() > 0 || i.expand || i.again > 0) && !i.guard && !i.blocks()
}

// waiting returns the number of names to be considered in the next turns.
func (i *interest) waiting() int {
	n := len(i.pending)
	for _, b := range i.fresh {
		n += len(b.names)
	}
	return n
}

// trim drops names that changed while the wildcard's response goes unanswered, if they are
// far more than the subscriber holds. The existing ones among them are found again when the
// wildcard is expanded.
func (i *interest) trim() {
	if !i.wildcard || !i.blocks() || len(i.pending) <= i.held.n+len(i.lacks.names)+tooMany {
		return
	}
	for name, p := range i.pending {
		if !p.again() && i.holding(name) == nil && !i.lacks.has(name) {
			delete(i.pending, name)
		}
	}
	i.expand = true
}

// few is the number of pending names that a subscriber keeps room for. Room for more is
// freed.
const few = 32

// shrink frees the room that a burst took once it is over. A map never shrinks, and walking
// an empty one takes as long as walking a full one. Without this, every turn of a
// subscriber would cost as much as the first one, which sent everything.
func (i *interest) shrink() {
	if i.crowded && len(i.pending) == 0 {
		i.pending, i.crowded = nil, false
	}
}

// hold records that the subscriber holds a resource. It keeps the resource's own name,
// which all streams share.
func (i *interest) hold(res *Resource, by uint64) {
	h := i.held.find(res.Name, res.Own.Hash)
	if h == nil {
		named := i.lacks.remove(res.Name)
		h = i.held.add(res.Shared)
		h.named = named
	} else {
		i.sum = i.sum.Without(h.Member)
	}
	i.share(h, res)
	h.serial, h.known = serialOf(by), sent
	i.sum = i.sum.With(res.Own.Member)
}

// share replaces a holding's label by the resource's own, which all streams share.
func (i *interest) share(h *holding, res *Resource) {
	h.Label = res.Shared
	if i.full {
		h.Label = &res.Own
	}
}

// release records that the subscriber no longer holds a resource.
func (i *interest) release(name string) {
	h := i.holding(name)
	if h == nil {
		return
	}
	i.sum = i.sum.Without(h.Member)
	if h.named {
		i.lacks.add(h.Name)
	}
	i.held.remove(h.Name, h.Hash)
}

// unsure records that the subscriber may hold another version than the one it was sent.
func (i *interest) unsure(h *holding) {
	unknown := world.MemberOf(h.Name, Version{})
	i.sum = i.sum.Without(h.Member).With(unknown)
	h.Label = &world.Label{Name: h.Name, Member: unknown, Hash: h.Hash}
	h.serial, h.known = 0, unsure
}

// resume records a version that the subscriber claims to hold.
func (i *interest) resume(name string, v Version) {
	h := i.held.add(&world.Label{Name: name, Member: world.MemberOf(name, v), Hash: i.hash(name), Version: v, Made: time.Now()})
	h.named = i.lacks.remove(name)
	i.sum = i.sum.With(h.Member)
}

// forget drops the state of a name that is no longer subscribed. If the name is requested
// again, it is sent again.
func (i *interest) forget(name string) {
	i.cross(name)
	i.release(name)
	delete(i.pending, name)
	i.waits.take(name)
	delete(i.unproven, name)
	delete(i.removed, name)
	i.clearNACK(name)
	i.stir(name)
}

// forgetUnsubscribed forgets every unsubscribed name, after the wildcard has ended.
func (i *interest) forgetUnsubscribed() {
	var gone []string
	for h := range i.held.all {
		gone = append(gone, h.Name)
	}
	for name := range i.pending {
		gone = append(gone, name)
	}
	for name := range i.waits.names {
		gone = append(gone, name)
	}
	for name := range i.removed {
		gone = append(gone, name)
	}
	for name := range i.unproven {
		gone = append(gone, name)
	}
	for name := range i.nacked {
		gone = append(gone, name)
	}
	for _, name := range gone {
		if !i.subscribed(name) {
			i.forget(name)
		}
	}
}
