package session

import "github.com/isthmus-mesh/isthmus/push/world"

// bring makes the resources of this type pending that other types brought on this stream
// before the client asked for the type. The client's request lists them as held, but it
// waits for them nevertheless.
func (d *draft) bring() {
	if !d.resumes {
		return
	}
	d.resumes = false
	if !d.spec.Awaited {
		return
	}
	for _, by := range d.info.BroughtBy {
		other := d.stream.state(by)
		if other == nil || other.view == nil {
			continue
		}
		info := d.look.Types.All[by]
		w := d.look.Source(info).World
		for h := range other.held.All {
			if !h.onStream() || other.opened(h) { // a resource in the making brings them once it is sent
				continue
			}
			if subject, ok, _ := d.look.Find(w, other.view.View, info.Row, h.Name); ok {
				d.demand(d.State, subject, Pending{})
			}
		}
	}
}

// accompany makes the resources pending that a resource of the response brings, if its
// client waits for them.
func (d *draft) accompany(subject world.Subject, p Pending) {
	for _, t := range d.info.BringTypes {
		if other := d.stream.state(t); other != nil && other.spec.Awaited {
			d.demand(other, subject, p)
		}
	}
}

// accompanyLater accompanies a resource once the full set is sent. That may be some turns
// later, and its client does not wait for resources sent before the set.
func (d *draft) accompanyLater(name string, subject world.Subject, p Pending) {
	if len(d.info.BringTypes) == 0 {
		return
	}
	if d.open.brings == nil {
		d.open.brings = map[string]bringing{}
	}
	d.open.brings[name] = bringing{subject, p}
}

// demand makes the resources of another type pending that a subject refers to.
func (d *draft) demand(other *State, subject world.Subject, p Pending) {
	info := d.look.Types.All[other.t]
	w := d.look.Source(info).World
	if w == nil || other.view == nil {
		return
	}
	for _, name := range d.look.RefersTo(subject, info.Name) {
		if !other.subscribed(name) {
			continue
		}
		_, found, _ := d.look.Find(w, other.view.View, info.Row, name)
		if found || other.Considers(name) && other.holding(name) != nil { // the latter is to be removed, unless it is back by then
			other.want(name, Pending{brought: true, Since: p.Since, Urgent: p.Urgent})
		}
	}
}

// outside reports whether a client would forget a resource that it lacks. Once the client
// asks for the resource that brings it, both are sent.
func (d *draft) outside(name string) bool {
	if d.spec.Parent == nil || len(d.info.BroughtBy) == 0 || d.named(name) || d.holding(name) != nil {
		return false
	}
	by := d.stream.state(d.info.BroughtBy[0])
	return by == nil || !by.subscribed(d.spec.Parent(name))
}

// heldBack reports whether a resource that a subject needs has to reach the client first.
// Until then the client may have the previous version, with other references: removals wait
// for this name. A NACK may last for ever, so removals do not wait for a name that only a
// NACK holds back.
func (d *draft) heldBack(name string, p Pending, subject world.Subject) bool {
	if h := d.holding(name); d.spec.Fixed && h != nil && h.known != unsure {
		return false
	}
	by, nacked := d.obstacle(subject)
	if by == (obstacle{}) {
		return false
	}
	lacks := d.resumesWhole() && d.holding(name) == nil
	if lacks && nacked {
		return false // the client may hold this from before, and a set without it would remove it
	}
	p.nacked = nacked
	d.wait(name, wait{Pending: p, lacks: lacks})
	by.keep(waiter{d.t, name})
	return true
}

// resumesWhole reports whether the response is the first full set for a client with a claim.
// Such a client deletes the resources that the set lacks.
func (d *draft) resumesWhole() bool {
	return d.full && d.claim != nil && *d.claim != (world.Version{})
}

// incomplete reports whether a full set lacks a waiting resource that the client may hold.
func (d *draft) incomplete() bool { return d.resumesWhole() && d.waits.lacking > 0 }

// obstacle is the event that a name waits for: the answer to a response, or otherwise the
// next event of a name of another type. The zero obstacle is none.
type obstacle struct {
	response *waiters
	of       *State
	name     string
}

// keep makes a name wait for an obstacle.
func (o obstacle) keep(x waiter) {
	if o.response != nil {
		o.response.add(x)
		return
	}
	if o.of.behind == nil {
		o.of.behind = map[string]waiters{}
	}
	w := o.of.behind[o.name]
	w.add(x)
	o.of.behind[o.name] = w
}

// obstacle returns the obstacle that a subject has to wait for, and whether only a NACK
// holds it back.
func (d *draft) obstacle(subject world.Subject) (first obstacle, nacked bool) {
	for _, t := range d.info.NeedTypes {
		other := d.stream.state(t)
		if other == nil || other.quiet() {
			continue
		}
		for _, name := range d.look.RefersTo(subject, other.spec.Name) {
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

// unsettled returns the obstacle if a name is in flight or pending. It also returns one for
// a NACKed name, which holds back a resource of a single service that refers to it; nacked
// distinguishes the two. A name about to be removed is no obstacle, because its removal
// waits for the resources that refer to it. A NACKed removal is none either: the name has
// nothing more to send.
func (d *draft) unsettled(other *State, name string) (by obstacle, nacked bool) {
	if response := other.carried(name); response != nil {
		return obstacle{response: response}, false
	}
	by = obstacle{of: other, name: name}
	p, coming := other.coming(name)
	listed := len(other.fresh) > 0 || other.expand && !other.guard // and not considered yet
	coming = coming || listed && other.holding(name) == nil
	if coming && !p.nacked && d.look.exists(other, name) {
		return by, false
	}
	if d.spec.Aggregate != nil && d.spec.Aggregate(d.stream.kind) {
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

// referred reports whether a resource of the client may still refer to a removed name. A
// type that may refer to it must be sent up to the step at which the name disappeared, and
// answered. Later responses are not waited for, so that churn holds back no removal. A type
// that is guarded until every source is listed is not waited for either. Its client may not
// be sent that a cluster disappeared, but is still sent that it has no endpoints.
func (d *draft) referred(name string, p Pending) bool {
	if p.Revoked {
		return false
	}
	if p.step == 0 {
		p.step = d.look.Step
		d.pending[name] = p
	}
	for _, t := range d.info.Referrers {
		if other := d.stream.state(t); other != nil && !other.guard && other.settled < p.step {
			p.nacked = false
			d.wait(name, wait{Pending: p, gone: true})
			return true
		}
	}
	return false
}
