package push

import "slices"

// nack is what is known of a name that came in a NACKed response. If others
// came with it, nobody knows which of them was at fault, nor what the
// subscriber made of them: they are tried again at once, in ever smaller
// groups, until what is at fault stands alone. That is not sent again as it is.
type nack struct {
	member member // as it was NACKed; zero for a removal
	group  int    // how many may be tried together next; 0 if the fault is its own
	again  bool   // it is to be tried again
}

// mostRetried bounds the names for which removals of what a wildcard had are to be
// tried again.
const mostRetried = 1024

// refuse notes what is in doubt after a NACK: what the response brought and
// no later one brought anew. It reports whether the response was awaited.
func (i *interest) refuse(by uint64) bool {
	if by <= i.landed {
		return false
	}
	at := slices.IndexFunc(i.flights, func(f *flight) bool { return f.serial == by })
	var f flight // of one too long ago there is no more to know
	if at >= 0 {
		f = *i.flights[at]
	}
	group := 0
	if f.brought != 1 {
		group = max(1, (f.brought+1)/2)
	}
	left := 0
	for h := range i.held.all {
		if h.serial == serialOf(by) {
			left++
			i.note(h.name, nack{member: h.member, group: group})
			if i.full {
				h.serial = 0
			} else {
				i.unsure(h)
			}
		}
	}
	for name, serial := range i.removed {
		if serial != by {
			continue
		}
		left++
		delete(i.removed, name)
		// A removal that came with others is tried again, for the subscriber may have
		// taken nothing of the response. Of names that it does not ask for there is no
		// end: one that it will not let go of alone is left with it, and so is what
		// there are too many of.
		if i.named(name) || group > 0 && len(i.nacked) < mostRetried {
			i.note(name, nack{group: group})
		}
	}
	newer := at >= 0 && at == len(i.flights)-1 && f.version != i.sum // it has an answer of its own
	if i.full && newer || !i.full && left > 0 {
		i.retry()
	}
	return at >= 0 || left > 0
}

func (i *interest) note(name string, n nack) {
	if i.nacked == nil {
		i.nacked = map[string]nack{}
	}
	if i.nacked[name].again {
		i.again--
	}
	i.nacked[name] = n
}

// retry has what was NACKed tried again, but for what was at fault alone.
func (i *interest) retry() {
	for name, n := range i.nacked {
		switch {
		case i.full: // in one set in any case
			i.want(name, pending{force: true})
		case n.group > 0 && !n.again:
			n.again = true
			i.again++
			i.nacked[name] = n
		}
	}
}

// retryGroup lists what is tried again in the next response: the largest group
// there is, for that is what most good resources are in. It goes by itself, lest
// what changes all the time is drawn into the doubt. Whatever else is pending
// has every other response.
func (i *interest) retryGroup() (names []string) {
	if i.again == 0 || i.retried && i.waiting() > 0 {
		i.retried = false
		return nil
	}
	i.retried = true
	group := 0
	for _, n := range i.nacked {
		if n.again {
			group = max(group, n.group)
		}
	}
	for name, n := range i.nacked {
		if n.again && n.group == group {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = names[:min(len(names), group, turnNames)]
	for _, name := range names {
		n := i.nacked[name]
		n.again = false
		i.again--
		i.nacked[name] = n
		i.want(name, pending{force: true})
	}
	return names
}

// missed notes that a name could not be tried again, by a fault of ours. It is sent
// when it is looked at next, whatever it is then.
func (i *interest) missed(name string) {
	if n := i.nacked[name]; n.group > 0 && !i.full {
		n.member = memberOf(name, Version{})
		i.nacked[name] = n
	}
}

// pardon forgets that a name was NACKed, for it is not any more what it was.
// The set that it was in may be fine without it.
func (i *interest) pardon(name string) {
	n, was := i.nacked[name]
	if !was {
		return
	}
	delete(i.nacked, name)
	if n.again {
		i.again--
	}
	if i.full {
		i.retry()
	}
}

// excuse drops a name from those NACKed without trying others again.
func (i *interest) excuse(name string) {
	if i.nacked[name].again {
		i.again--
	}
	delete(i.nacked, name)
}
