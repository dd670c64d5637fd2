package push

import (
	"slices"
	"time"
)

// impact is what is known of an update before it is made: the subscribers that it
// concerns. No lock is held while it is worked out. A subscriber that comes between
// then and the step counts as concerned: a mark too many costs a comparison.
type impact struct {
	questions []question
	debounced []debounced // changes that a debounce keeps back
	completes bool        // with it every source of the producer has been listed

	number   uint64   // of the step, for the interests that were asked about
	reviewed []Type   // types whose clients may have another view
	keys     []string // the audience keys that reach them; nil for all
}

// target is a resource, as it goes to the subscribers of a mode that some
// audience keys reach; nil stands for all keys.
type target struct {
	t        Type
	mode     Mode
	name     string
	audience []string
}

// question asks which subscribers a change concerns.
type question struct {
	target
	change  change
	since   time.Time
	answers []answer
	removes bool  // from some view
	gone    []any // the slots of what the views lose
}

// answer says whether the change affects the subscribers that share a view.
type answer struct {
	view     *sharedView
	affected bool
}

type debounced struct {
	lane   *lane
	name   string
	change change
}

// impactOf finds out which subscribers an update of a producer concerns.
func (e *Engine) impactOf(p *Producer, u Update) *impact {
	old, now := *p.world.Load(), u.World
	s := &impact{completes: now.Complete() && !old.Complete()}
	e.planReviews(s, p, old, now, u.Reviewed)
	types := e.table.Load().types
	replacing := map[laneKey]*lane{}
	for _, c := range u.Changed {
		info := types[p.Type(c.Row)]
		for m := range modes {
			what := change{audience: c.Audience, urgent: c.Urgent, revoked: c.Revoked}
			if l := info.lane(m, c.Name); l != nil {
				s.debounced = append(s.debounced, debounced{l, c.Name, what})
				if info.replaces(m, l) {
					replacing[laneKey{p.Type(c.Row), m}] = l
				}
			} else {
				s.questions = append(s.questions, e.ask(info, m, old, now, c.Name, what, u.Committed))
			}
		}
	}
	s.holdReplaced(replacing)
	return s
}

type laneKey struct {
	t    Type
	mode Mode
}

// holdReplaced has removals wait for what may take their place.
func (s *impact) holdReplaced(by map[laneKey]*lane) {
	if len(by) == 0 {
		return
	}
	s.questions = slices.DeleteFunc(s.questions, func(q question) bool {
		l := by[laneKey{q.t, q.mode}]
		if l == nil || !q.removes || q.change.urgent {
			return false
		}
		s.debounced = append(s.debounced, debounced{l, q.name, q.change})
		return true
	})
}

// ask finds out which of its subscribers' views a change affects. A resource that
// changed there and back while a debounce kept it back affects all of them: some
// may have been sent the state in between.
func (e *Engine) ask(info *typeInfo, m Mode, old, now World, name string, c change, since time.Time) question {
	q := question{target: target{info.producer.Type(info.row), m, name, c.audience}, change: c, since: since}
	if c.again {
		return q
	}
	q.answers = e.viewsOf(q.target)
	for n := range q.answers {
		v := q.answers[n].view.View
		was, had, bad := e.find(old, v, info.row, name)
		is, has, worse := e.find(now, v, info.row, name)
		q.answers[n].affected = bad || worse || had != has || was != is
		if had && !has {
			q.removes = true
			e.panics.attempt(PanicResource, name, func() { q.gone = append(q.gone, slotsOf(was)...) })
		}
	}
	return q
}

// viewsOf are the views of the subscribers to a resource, each once.
func (e *Engine) viewsOf(of target) (views []answer) {
	e.asked++
	e.index.concerned(of, func(i *interest) {
		if v := i.view; v.asked != e.asked {
			v.asked = e.asked
			views = append(views, answer{view: v})
		}
	})
	return views
}

// planReviews finds out which of the clients that an update's audience keys reach
// have another view after it.
func (e *Engine) planReviews(s *impact, p *Producer, old, now World, keys []string) {
	if len(keys) == 0 {
		return
	}
	if s.keys = keys; slices.Contains(keys, "*") {
		s.keys = nil
	}
	e.asked++
	s.number = e.asked
	for t, info := range e.table.Load().types {
		if info.producer != p {
			continue
		}
		s.reviewed = append(s.reviewed, Type(t))
		var found []*interest
		e.index.reached(Type(t), s.keys, func(i *interest) { found = append(found, i) })
		for _, i := range found {
			i.reviewed, i.moved = s.number, e.moves(i, info, old, now)
		}
	}
}

// moves reports whether a client has another view of a type in a world than in
// the one before.
func (e *Engine) moves(i *interest, info *typeInfo, old, now World) (moves bool) {
	s := i.subscriber
	if !e.panics.attempt(PanicStream, "client "+s.Info.ID, func() { moves = old.View(info.row, s.client) != now.View(info.row, s.client) }) {
		e.fail(s)
	}
	return moves
}
