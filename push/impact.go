package push

import (
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/push/index"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// impact is the effect of an update, found before the update is made: the affected
// subscribers. It is computed with no lock held. A subscriber that connects between then
// and the step counts as affected: a needless mark costs a comparison.
type impact struct {
	questions []question
	debounced []debounced // changes that a debounce delays
	completes bool        // with the update, every source of the producer has been listed

	number   uint64       // of the step, as recorded in the compared interests
	reviewed []world.Type // types with clients that may have another view
	keys     []string     // the audience keys that reach them; nil for all
}

// question asks for the subscribers that a change affects.
type question struct {
	index.Target
	change  change
	since   time.Time
	answers []answer
	removes bool  // a removal from some view
	gone    []any // the slots of the subjects that the views lose
}

// answer records whether the change affects the subscribers that share a view.
type answer struct {
	view     *index.View
	affected bool
}

type debounced struct {
	class  *class
	name   string
	change change
}

// impactOf finds the subscribers that an update of a producer affects.
func (e *dispatcher) impactOf(p *Producer, u world.Update) *impact {
	old, now := *p.world.Load(), u.World
	s := &impact{completes: now.Complete() && !old.Complete()}
	e.planReviews(s, p, old, now, u.Reviewed)
	types := e.table.Load().types
	replacing := map[classKey]*class{}
	for _, c := range u.Changed {
		info := types[p.Type(c.Row)]
		for m := range world.Modes {
			what := change{audience: c.Audience, urgent: c.Urgent, revoked: c.Revoked}
			if by := info.class(m, c.Name); by != nil {
				s.debounced = append(s.debounced, debounced{by, c.Name, what})
				if by.replaces {
					replacing[classKey{by.t, m}] = by
				}
			} else {
				s.questions = append(s.questions, e.ask(info, m, old, now, c.Name, what, u.Committed))
			}
		}
	}
	s.holdReplaced(replacing)
	return s
}

type classKey struct {
	t    world.Type
	mode world.Mode
}

// holdReplaced makes removals wait for the changes that may replace them.
func (s *impact) holdReplaced(by map[classKey]*class) {
	if len(by) == 0 {
		return
	}
	s.questions = slices.DeleteFunc(s.questions, func(q question) bool {
		c := by[classKey{q.Type, q.Mode}]
		if c == nil || !q.removes || q.change.urgent {
			return false
		}
		s.debounced = append(s.debounced, debounced{c, q.Name, q.change})
		return true
	})
}

// ask finds the views of the target's subscribers that a change affects. A resource that
// changed there and back during a debounce affects all views: some subscribers may have
// been sent the state in between.
func (e *dispatcher) ask(info *typeInfo, m world.Mode, old, now world.World, name string, c change, since time.Time) question {
	q := question{Target: index.Target{Type: info.producer.Type(info.Row), Mode: m, Name: name, Audience: c.audience}, change: c, since: since}
	if c.again {
		return q
	}
	q.answers = e.viewsOf(q.Target)
	for n := range q.answers {
		v := q.answers[n].view.View
		was, had, bad := e.reader.Find(old, v, info.Row, name)
		is, has, worse := e.reader.Find(now, v, info.Row, name)
		q.answers[n].affected = bad || worse || had != has || was != is
		if had && !has {
			q.removes = true
			q.gone = append(q.gone, e.reader.SlotsOf(was, name)...)
		}
	}
	return q
}

// viewsOf returns the views of the subscribers to a resource, each once.
func (e *dispatcher) viewsOf(of index.Target) (views []answer) {
	e.asked++
	e.index.Concerned(of, func(i *index.Entry[*interest]) {
		if v := i.View(); v.Asked != e.asked {
			v.Asked = e.asked
			views = append(views, answer{view: v})
		}
	})
	return views
}

// planReviews finds the clients with another view after an update, among the clients that
// its audience keys reach.
func (e *dispatcher) planReviews(s *impact, p *Producer, old, now world.World, keys []string) {
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
		s.reviewed = append(s.reviewed, world.Type(t))
		var found []*interest
		e.index.Reached(world.Type(t), s.keys, func(i *index.Entry[*interest]) { found = append(found, i.Owner) })
		for _, i := range found {
			i.reviewed, i.moved = s.number, e.moves(i, info, old, now)
		}
	}
}

// moves reports whether a client's view of a type differs between two worlds.
func (e *dispatcher) moves(i *interest, info *typeInfo, old, now world.World) (moves bool) {
	s := i.subscriber
	if !e.reader.Attempt(world.PanicStream, "client "+s.Info.ID, func() { moves = old.View(info.Row, s.client) != now.View(info.Row, s.client) }) {
		s.fail()
	}
	return moves
}
