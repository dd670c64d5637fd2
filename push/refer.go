package push

// bring has the resources of this type sent that others on this stream brought
// before the subscriber asked for the type. Its request said that it holds them, but
// its client waits for them all the same.
func (d *draft) bring() {
	if !d.resumes {
		return
	}
	d.resumes = false
	if !d.info.Awaited {
		return
	}
	for _, by := range d.info.broughtBy {
		other := d.subscriber.interest(by)
		if other == nil || other.view == nil {
			continue
		}
		info := d.turn.table.types[by]
		w := d.turn.world(d.subscriber.engine, info)
		for h := range other.held.all {
			if !h.onStream() {
				continue
			}
			if subject, ok, _ := d.subscriber.engine.find(w, other.view.View, info.row, h.name); ok {
				d.demand(d.interest, d.info, subject, pending{})
			}
		}
	}
}

// accompany has the resources sent that a resource of the response brings, as far
// as its client waits for them.
func (d *draft) accompany(subject Subject, p pending) {
	for _, t := range d.info.brings {
		info := d.turn.table.types[t]
		if other := d.subscriber.interest(t); other != nil && info.Awaited {
			d.demand(other, info, subject, p)
		}
	}
}

// demand has the resources of another type sent that a subject refers to.
func (d *draft) demand(other *interest, info *typeInfo, subject Subject, p pending) {
	e := d.subscriber.engine
	w := d.turn.world(e, info)
	if w == nil || other.view == nil {
		return
	}
	for _, name := range e.refersTo(subject, info.Name) {
		if !other.subscribed(name) {
			continue
		}
		_, found, _ := e.find(w, other.view.View, info.row, name)
		_, looked := other.pending[name]
		if found || looked && other.holding(name) != nil { // the latter is to be removed, unless it is back by then
			other.want(name, pending{brought: true, since: p.since, urgent: p.urgent})
		}
	}
}

// outside reports whether a client would forget a resource that it lacks. Once it asks
// for what brings that, it is sent both.
func (d *draft) outside(name string) bool {
	if d.info.Within == nil || len(d.info.broughtBy) == 0 || d.named(name) || d.holding(name) != nil {
		return false
	}
	by := d.subscriber.interest(d.info.broughtBy[0])
	return by == nil || !by.subscribed(d.info.Within(name))
}

// entered has all names looked at of types whose resources are within those of another,
// which the subscriber says that it holds. It may have asked for all of them before it
// asked for those, and what it holds as it is does not bring them.
func (s *Subscriber) entered(other *interest) {
	types := s.engine.table.Load().types
	for _, t := range types[other.t].brings {
		if i := s.interest(t); i != nil && types[t].Within != nil {
			i.expand = i.wildcard
		}
	}
}

// heldBack reports whether something that a subject needs has to reach the
// subscriber first. Until then the subscriber may have the version before, which
// refers to something else: removals wait for this name. A NACK may last for ever,
// so removals do not wait for a name that a NACK alone keeps back.
func (d *draft) heldBack(name string, p pending, subject Subject) bool {
	if h := d.holding(name); d.info.Fixed && h != nil && h.known != unsure {
		return false
	}
	waits, nacked := d.waits(subject)
	if !waits {
		return false
	}
	if d.resumesWhole() && d.holding(name) == nil {
		if nacked {
			return false // it may have this from before, and a set without it would take it away
		}
		d.incomplete = true
	}
	p.nacked = nacked
	d.pending[name] = p
	if !nacked {
		d.leaves(name)
	}
	return true
}

// resumesWhole reports whether the response is the first full set for a subscriber that
// may hold anything, and that deletes what the set lacks.
func (d *draft) resumesWhole() bool {
	return d.full && d.claim != nil && *d.claim != (Version{})
}

// leaves notes that a name of this turn is left for a later one. Until then the
// type is covered only up to the step before the one that may have changed the name.
func (d *draft) leaves(name string) {
	p := d.pending[name]
	if p.kept == 0 {
		p.kept = d.covered + 1
		d.pending[name] = p
	}
	d.covers = min(d.covers, p.kept-1)
}

// waits reports whether a subject has to wait for what it needs, and whether that
// is because of a NACK alone.
func (d *draft) waits(subject Subject) (waits, nacked bool) {
	nacked = true
	for _, t := range d.info.needs {
		other := d.subscriber.interest(t)
		if other == nil || other.quiet() {
			continue
		}
		for _, name := range d.subscriber.engine.refersTo(subject, d.turn.table.types[t].Name) {
			if !other.subscribed(name) {
				continue
			}
			w, n := d.unsettled(other, name)
			waits, nacked = waits || w, nacked && (n || !w)
		}
	}
	return waits, nacked
}

// quiet reports whether no name of the type is on its way or NACKed, so that no
// subject has to be asked for its references.
func (i *interest) quiet() bool {
	return len(i.pending) == 0 && len(i.fresh) == 0 && len(i.nacked) == 0 && !i.expand && !i.blocks()
}

// unsettled reports whether a name is on its way, or was NACKed and keeps back a
// resource of a single service that refers to it; nacked tells the two apart.
// A name about to be removed is not waited for, because its removal waits for the
// resources that refer to it. Nor is a NACKed removal: the name has nothing more to
// send.
func (d *draft) unsettled(other *interest, name string) (waits, nacked bool) {
	if other.inFlight(name) {
		return true, false
	}
	p, coming := other.pending[name]
	listed := len(other.fresh) > 0 || other.expand && !other.guard // and not looked at yet
	coming = coming || listed && other.holding(name) == nil
	if coming && !p.nacked && d.there(other, name) {
		return true, false
	}
	if d.aggregates() {
		return false, false // what a NACK keeps back may never come, and this is of others, too
	}
	n, was := other.nacked[name]
	if removal := n.member == (member{}); !was || removal {
		return coming && p.nacked, coming && p.nacked
	}
	return true, !n.again // what was NACKed with others is on its way again
}

func (d *draft) aggregates() bool {
	return d.info.Aggregate != nil && d.info.Aggregate(d.subscriber.client.Kind)
}

// there reports whether a name stands for something of another type.
func (d *draft) there(other *interest, name string) bool {
	e, info := d.subscriber.engine, d.turn.table.types[other.t]
	w := d.turn.world(e, info)
	if w == nil || other.view == nil {
		return true
	}
	_, found, bad := e.find(w, other.view.View, info.row, name)
	return found || bad
}

// referred reports whether something that the subscriber has may still refer to a
// name that is gone. That is so while a type that may refer to it has not been sent
// everything up to the step at which the name went, or has not answered. Later
// responses are not waited for, so that churn keeps no removal back.
func (d *draft) referred(name string, p pending) bool {
	if p.revoked {
		return false
	}
	if p.step == 0 {
		p.step = d.turn.step
		d.pending[name] = p
	}
	for _, t := range d.info.referrers {
		if other := d.subscriber.interest(t); other != nil && other.settled < p.step {
			d.leaves(name)
			return true
		}
	}
	return false
}
