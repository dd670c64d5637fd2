package push

// bring has everything sent that was brought along by what the subscriber was
// sent on this stream before it asked for this type. It said that it holds
// that, but its client waits for it all the same.
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

// accompany sends what a resource of the response brings and its client awaits.
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
		if _, found, _ := e.find(w, other.view.View, info.row, name); found {
			other.want(name, pending{force: true, since: p.since, urgent: p.urgent})
		}
	}
}

// heldBack reports whether something that a subject needs has to reach the
// subscriber first.
func (d *draft) heldBack(subject Subject) bool {
	for _, t := range d.info.needs {
		other := d.subscriber.interest(t)
		if other == nil || other.quiet() {
			continue
		}
		for _, name := range d.subscriber.engine.refersTo(subject, d.turn.table.types[t].Name) {
			if other.subscribed(name) && other.unsettled(name, d.info.Aggregate) {
				return true
			}
		}
	}
	return false
}

// quiet reports whether no name of the type is on its way or NACKed, so that
// nobody has to be asked what it refers to.
func (i *interest) quiet() bool {
	return len(i.pending) == 0 && len(i.fresh) == 0 && len(i.nacked) == 0 && !i.blocks()
}

// unsettled reports whether a name is on its way, or was NACKed and matters to
// one who refers to it alone.
func (i *interest) unsettled(name string, aggregate bool) bool {
	_, waits := i.pending[name]
	waits = waits || len(i.fresh) > 0 && i.holding(name) == nil // it may be among them
	if waits || i.inFlight(name) {
		return true
	}
	_, was := i.nacked[name]
	return was && !aggregate
}

// referred reports whether something that the subscriber has may still refer to
// a name that is gone: types that may refer to it have not yet been sent
// everything up to the step at which it went, or have not answered. Later
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
			d.covers = min(d.covers, p.step-1)
			return true
		}
	}
	return false
}
