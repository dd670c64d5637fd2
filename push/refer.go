package push

import "github.com/isthmus-mesh/isthmus/push/world"

// bring makes the resources of this type pending that other types brought on this stream
// before the subscriber asked for the type. The subscriber's request lists them as held,
// but its client waits for them nevertheless.
func (d *draft) bring() {
	if !d.resumes {
		return
	}
	d.resumes = false
	if !d.info.Awaited {
		return
	}
	for _, by := range d.info.BroughtBy {
		other := d.subscriber.interest(by)
		if other == nil || other.view == nil {
			continue
		}
		info := d.turn.table.types[by]
		w := d.turn.world(d.subscriber.engine, info)
		for h := range other.held.all {
			if !h.onStream() || other.opened(h) { // a resource in the making brings them once it is sent
				continue
			}
			if subject, ok, _ := d.subscriber.engine.reader.Find(w, other.view.View, info.Row, h.Name); ok {
				d.demand(d.interest, d.info, subject, pending{})
			}
		}
	}
}

// accompany makes the resources pending that a resource of the response brings, if its
// client waits for them.
func (d *draft) accompany(subject Subject, p pending) {
	for _, t := range d.info.BringTypes {
		info := d.turn.table.types[t]
		if other := d.subscriber.interest(t); other != nil && info.Awaited {
			d.demand(other, info, subject, p)
		}
	}
}

// bringing is a resource of a full set in the making that may bring others.
type bringing struct {
	subject Subject
	p       pending
}

// accompanyLater accompanies a resource once the full set is sent. That may be some turns
// later, and its client does not wait for resources sent before the set.
func (d *draft) accompanyLater(name string, subject Subject, p pending) {
	if len(d.info.BringTypes) == 0 {
		return
	}
	if d.open.brings == nil {
		d.open.brings = map[string]bringing{}
	}
	d.open.brings[name] = bringing{subject, p}
}

// demand makes the resources of another type pending that a subject refers to.
func (d *draft) demand(other *interest, info *typeInfo, subject Subject, p pending) {
	e := d.subscriber.engine
	w := d.turn.world(e, info)
	if w == nil || other.view == nil {
		return
	}
	for _, name := range e.reader.RefersTo(subject, info.Name) {
		if !other.subscribed(name) {
			continue
		}
		_, found, _ := e.reader.Find(w, other.view.View, info.Row, name)
		_, looked := other.coming(name)
		if found || looked && other.holding(name) != nil { // the latter is to be removed, unless it is back by then
			other.want(name, pending{brought: true, since: p.since, urgent: p.urgent})
		}
	}
}

// outside reports whether a client would forget a resource that it lacks. Once the client
// asks for the resource that brings it, both are sent.
func (d *draft) outside(name string) bool {
	if d.info.Within == nil || len(d.info.BroughtBy) == 0 || d.named(name) || d.holding(name) != nil {
		return false
	}
	by := d.subscriber.interest(d.info.BroughtBy[0])
	return by == nil || !by.subscribed(d.info.Within(name))
}

// entered expands the wildcards of types with resources within other's. The subscriber
// claims to hold resources of other. It may have sent the wildcard before it asked for
// them, and an unchanged resource that it holds does not bring them.
func (s *Subscriber) entered(other *interest) {
	types := s.engine.table.Load().types
	for _, t := range types[other.t].BringTypes {
		if i := s.interest(t); i != nil && types[t].Within != nil {
			i.expand = i.wildcard
		}
	}
}

// heldBack reports whether a resource that a subject needs has to reach the subscriber
// first. Until then the subscriber may have the previous version, with other references:
// removals wait for this name. A NACK may last for ever, so removals do not wait for a name
// that only a NACK holds back.
func (d *draft) heldBack(name string, p pending, subject Subject) bool {
	if h := d.holding(name); d.info.Fixed && h != nil && h.known != unsure {
		return false
	}
	by, nacked := d.obstacle(subject)
	if by == (obstacle{}) {
		return false
	}
	lacks := d.resumesWhole() && d.holding(name) == nil
	if lacks && nacked {
		return false // the subscriber may hold this from before, and a set without it would remove it
	}
	p.nacked = nacked
	d.wait(name, wait{pending: p, lacks: lacks})
	by.keep(waiter{d.interest, name})
	return true
}

// resumesWhole reports whether the response is the first full set for a subscriber with a
// claim. Such a subscriber deletes the resources that the set lacks.
func (d *draft) resumesWhole() bool {
	return d.full && d.claim != nil && *d.claim != (Version{})
}

// incomplete reports whether a full set lacks a waiting resource that the subscriber may
// hold.
func (d *draft) incomplete() bool { return d.resumesWhole() && d.waits.lacking > 0 }

// obstacle returns the obstacle that a subject has to wait for, and whether only a NACK
// holds it back.
func (d *draft) obstacle(subject Subject) (first obstacle, nacked bool) {
	for _, t := range d.info.NeedTypes {
		other := d.subscriber.interest(t)
		if other == nil || other.quiet() {
			continue
		}
		for _, name := range d.subscriber.engine.reader.RefersTo(subject, d.turn.table.types[t].Name) {
			if !other.subscribed(name) {
				continue
			}
			by, n := d.unsettled(other, name)
			switch {
			case by == obstacle{}:
			case !n:
				return by, false
			case first == obstacle{}:
				first = by
			}
		}
	}
	return first, true
}

// quiet reports whether no name of the type is in flight, pending or NACKed. A subject then
// need not be asked for its references.
func (i *interest) quiet() bool {
	return len(i.pending) == 0 && len(i.waits.names) == 0 && len(i.fresh) == 0 && len(i.nacked) == 0 && !i.expand && i.open.serial == 0 && !i.blocks()
}

// unsettled returns the obstacle if a name is in flight or pending. It also returns one for
// a NACKed name, which holds back a resource of a single service that refers to it; nacked
// distinguishes the two. A name about to be removed is no obstacle, because its removal
// waits for the resources that refer to it. A NACKed removal is none either: the name has
// nothing more to send.
func (d *draft) unsettled(other *interest, name string) (by obstacle, nacked bool) {
	if response := other.carried(name); response != nil {
		return obstacle{response: response}, false
	}
	by = obstacle{of: other, name: name}
	p, coming := other.coming(name)
	listed := len(other.fresh) > 0 || other.expand && !other.guard // and not considered yet
	coming = coming || listed && other.holding(name) == nil
	if coming && !p.nacked && d.there(other, name) {
		return by, false
	}
	if d.aggregates() {
		return obstacle{}, false // a name that a NACK holds back may never come, and this resource is of other services, too
	}
	n, was := other.nacked[name]
	switch removal := n.member == (world.Member{}); {
	case was && !removal:
		return by, !n.again // a name NACKed with others is retried
	case coming && p.nacked:
		return by, true
	default:
		return obstacle{}, false
	}
}

func (d *draft) aggregates() bool {
	return d.info.Aggregate != nil && d.info.Aggregate(d.subscriber.client.Kind)
}

// there reports whether a name of another type exists.
func (d *draft) there(other *interest, name string) bool {
	e, info := d.subscriber.engine, d.turn.table.types[other.t]
	w := d.turn.world(e, info)
	if w == nil || other.view == nil {
		return true
	}
	_, found, bad := e.reader.Find(w, other.view.View, info.Row, name)
	return found || bad
}

// referred reports whether a resource of the subscriber may still refer to a removed name.
// A type that may refer to it must be sent up to the step at which the name disappeared,
// and answered. Later responses are not waited for, so that churn holds back no removal. A
// type that is guarded until every source is listed is not waited for either. Its client
// may not be sent that a cluster disappeared, but is still sent that it has no endpoints.
func (d *draft) referred(name string, p pending) bool {
	if p.revoked {
		return false
	}
	if p.step == 0 {
		p.step = d.turn.step
		d.pending[name] = p
	}
	for _, t := range d.info.Referrers {
		if other := d.subscriber.interest(t); other != nil && !other.guard && other.settled < p.step {
			p.nacked = false
			d.wait(name, wait{pending: p, gone: true})
			return true
		}
	}
	return false
}
