package session

import "github.com/isthmus-mesh/isthmus/push/world"

// A full set may take several turns, each with newer worlds. A name that changes and changes
// back in the meantime leaves no difference: the set is sent only if another name differs from
// the last set, or if the client asked for it.

// alter records that the full set in the making changes a name, and reports whether it did
// not change the name before.
func (d *draft) alter(name string, p Pending) (anew bool) {
	if d.answer {
		return true // the first set is sent in any case
	}
	_, known := d.open.before[name]
	_, nacked := d.nacked[name]
	h := d.holding(name)
	switch {
	case p.again(), nacked: // sent although the client may have it
		d.open.asked = true
		delete(d.open.before, name)
	case known, h != nil && d.opened(h), d.removed[name] == d.open.serial:
		return false
	default:
		if d.open.before == nil {
			d.open.before = map[string]holding{}
		}
		if h == nil {
			h = &holding{}
		}
		d.open.before[name] = *h
	}
	return true
}

// takeBack undoes the change of a name by the full set in the making, if the client already has
// the resource. Nil means that the name does not exist.
func (d *draft) takeBack(name string, res *world.Resource, p Pending) bool {
	was, altered := d.open.before[name]
	if !altered || p.again() || was.Free() != (res == nil) || res != nil && !was.is(res.Own.Member) {
		return false
	}
	delete(d.removed, name)
	if res == nil {
		d.release(name)
	} else {
		d.enter(res, 0)
		h := d.holding(name)
		h.serial, h.known = was.serial, was.known
	}
	d.send(name)
	d.open.brought--
	d.unalter(name)
	return true
}

// unalter records that the full set in the making leaves a name as the client has it. A set
// that changes no name is not sent, unless the client asked for it.
func (s *State) unalter(name string) {
	if _, altered := s.open.before[name]; !altered {
		return
	}
	delete(s.open.before, name)
	delete(s.open.brings, name)
	if len(s.open.before) > 0 || s.open.asked || s.answer {
		return
	}
	s.open.behind.rouse(s.roused)
	s.open, s.record.withheld = opening{}, withheld{}
}

// firm has the full set in the making sent even if it equals the last one, after a NACK that
// puts that one in question.
func (o *opening) firm() {
	if len(o.before) > 0 {
		o.asked, o.before = true, nil
	}
}
