package push

import (
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// nack is a name that came in a NACKed response. If the response had other names, neither
// the one at fault nor the ones that the subscriber applied are known. They are retried at
// once, in ever smaller groups, until the resource at fault is alone in its response. Then
// it is not sent again until it changes.
type nack struct {
	member world.Member // as it was NACKed; zero for a removal
	group  int          // size of the group for the next retry; 0 if the name alone is at fault
	again  bool         // a retry is due
	// at and reason are for display only.
	at     time.Time
	reason string
}

// mostRetried bounds the NACKed removals of a wildcard's names that are retried.
const mostRetried = 1024

// noteNACK records the names that a NACK puts in question: the names of the response that
// no later one brought anew. It reports whether the response was awaited.
func (i *interest) noteNACK(by uint64, reason string) bool {
	if by <= i.landed {
		return false
	}
	at := slices.IndexFunc(i.flights, func(f *flight) bool { return f.serial == by })
	var f flight // stays zero for a response too old to be remembered
	if at >= 0 {
		f = *i.flights[at]
	}
	group := 0
	if f.brought != 1 {
		group = max(1, (f.brought+1)/2)
	}
	left, now := 0, time.Now()
	for h := range i.held.all {
		if h.serial == serialOf(by) {
			left++
			i.note(h.Name, nack{member: h.Member, group: group, at: now, reason: reason})
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
		// A removal that came with others is retried, because the subscriber may have applied
		// nothing of the response. Names that only a wildcard asks for have no bound. So the
		// subscriber keeps such a name if it NACKed the removal alone, or if too many others are
		// on record. A kept resource of an exclusive type may conflict with others, so its
		// removal is retried in any case.
		if i.named(name) || (group > 0 || i.full || i.exclusive) && len(i.nacked) < mostRetried {
			i.note(name, nack{group: group, at: now, reason: reason})
		}
	}
	newer := at >= 0 && at == len(i.flights)-1 && f.version != i.sum // a newer response is in flight, and its answer decides
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

// retry makes the NACKed names due for a retry, except names that were NACKed alone.
func (i *interest) retry() {
	for name, n := range i.nacked {
		switch {
		case i.full: // part of the set in any case
			i.want(name, pending{force: true})
		case n.group > 0 && !n.again:
			n.again = true
			i.again++
			i.nacked[name] = n
			i.stir(name)
		}
	}
}

// retryAlone retries the names that were NACKed alone, once no NACKed group is left. The
// subscriber's other resources, which may have been the reason, are different by now. They
// are first retried together, because some may be valid only with each other. Each attempt
// requires an ACK of another resource, so the retries end.
func (i *interest) retryAlone() {
	if !i.otherwise || i.again > 0 {
		return
	}
	i.otherwise = false
	alone := 0
	for _, n := range i.nacked {
		if n.group == 0 {
			alone++
		}
	}
	for name, n := range i.nacked {
		if n.group == 0 {
			n.group, n.again = alone, true
			i.again++
			i.nacked[name] = n
			i.stir(name)
		}
	}
}

// retryGroup lists the names that are tried again in the next response: the largest
// group there is, because most good resources are in it. Nothing else goes with it,
// so that a resource which changes all the time is not NACKed with the group. Other
// pending names have every other response.
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
	names = names[:min(len(names), group, i.subscriber.engine.config.Turn)]
	for _, name := range names {
		n := i.nacked[name]
		n.again = false
		i.again--
		i.nacked[name] = n
		i.want(name, pending{force: true})
	}
	return names
}

// missed records that a name could not be retried, after a panic. The next look sends its
// then current content.
func (i *interest) missed(name string) {
	if n := i.nacked[name]; n.group > 0 && !i.full {
		n.member = world.MemberOf(name, Version{})
		i.nacked[name] = n
	}
}

// clearNACK forgets that a name was NACKed, once its content has changed. A full set with
// the name may be valid now, so the set is retried.
func (i *interest) clearNACK(name string) {
	n, was := i.nacked[name]
	if !was {
		return
	}
	delete(i.nacked, name)
	i.stir(name)
	if name == i.withheld.name && !i.full {
		i.withheld = withheld{}
	}
	if n.again {
		i.again--
	}
	if i.full {
		i.retry()
	}
}

// dropNACK forgets that a name was NACKed, without another retry.
func (i *interest) dropNACK(name string) {
	if i.nacked[name].again {
		i.again--
	}
	delete(i.nacked, name)
	i.stir(name)
}

// clearNACKs forgets that any name was NACKed.
func (i *interest) clearNACKs() {
	names := i.nacked
	i.nacked, i.again, i.retried = nil, 0, false
	for name := range names {
		i.stir(name)
	}
}
