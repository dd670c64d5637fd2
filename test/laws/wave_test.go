package laws_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/hold"
)

// watched is a source of which everything was as its registry listed it before a registry
// lost something.
type watched struct {
	name    string
	hold    hold.Config
	records map[model.Ref]model.Record
}

// readBy is a registry that a source reads.
func (p *play) readBy(s step) int { return p.wanted[s.Which%len(p.wanted)].Registry }

// watch has a registry list some objects more, and returns its sources that have lost nothing
// lately, and of which nothing is held. What happens to them then follows without a look
// at their pasts.
func (p *play) watch(at int, more []model.Object) (list []watched) {
	r := p.registries[at]
	r.become(func() {
		for _, o := range more {
			r.objects[o.Record.Ref] = o
		}
	}, notice{})
	time.Sleep(r.late)
	p.settle()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil || r.mode != up || len(r.faults) > 0 || slices.ContainsFunc(r.refs(), func(ref model.Ref) bool { return ref.Kind == model.KindWorkload }) {
		return nil
	}
	for _, seat := range p.present {
		m := p.mirrors[seat.Name]
		if seat.Registry != at || seat.leaving || seat.halted || !m.renewed || m.hasLost() {
			continue
		}
		if slices.ContainsFunc(p.offers, func(o *offer) bool { return o.Source == seat.Name }) || !slices.Equal(m.lines(), r.mirror(m.hold).lines()) {
			continue
		}
		list = append(list, watched{seat.Name, m.hold, m.records()})
	}
	return list
}

// hasLost reports whether something is held, or was lost lately.
func (m *mirror) hasLost() bool {
	for _, list := range m.peaks {
		if len(list) > 0 {
			return true
		}
	}
	return len(m.held)+len(m.gone) > 0
}

// own are the objects of a registry that did not come from here.
func (r *registry) own() []model.Ref {
	return slices.DeleteFunc(r.refs(), func(ref model.Ref) bool { return isEcho(r.objects[ref]) })
}

func (w watched) endpoints() (n int) {
	for ref := range w.records {
		n += weigh(ref)
	}
	return n
}

// isDrop reports whether it is a suspicious drop to lose so many endpoints.
func (w watched) isDrop(lost int) bool {
	return lost > 0 && w.hold.Share < 1 && lost >= w.hold.Min && float64(lost) >= w.hold.Share*float64(w.endpoints())
}

// listedSince reports whether a source was listed at some time or later. Its readers may be
// about to list it again.
func (p *play) listedSince(source string, since time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.mirrors[source]
	return m != nil && !m.at.Before(since)
}

// mustHaveAll makes sure that every endpoint of a source is stored, if the source was listed
// since some time.
func (p *play) mustHaveAll(w watched, since time.Time, why string) {
	if !p.listedSince(w.name, since) {
		return
	}
	stored := map[model.Ref]bool{}
	for r := range p.stored.List(model.Filter{Source: w.name}) {
		stored[plain(r.Ref)] = true
	}
	for ref := range w.records {
		if weigh(ref) > 0 && !stored[ref] {
			p.Fatalf("%s of source %s is gone, which %s", ref.Key, w.name, why)
		}
	}
}

// wave has a registry lose endpoints by silence, some in each of a number of listings, until
// few are left or none. Services may go with the last of them.
func (p *play) wave(s step) {
	at := p.readBy(s)
	list := p.watch(at, s.Objects)
	p.calm = false
	r, before, few := p.registries[at], p.before[at], s.Which%3
	var all []model.Ref // of services, each as often as it has endpoints
	for _, ref := range r.own() {
		for range r.objects[ref].Owned {
			all = append(all, ref)
		}
		if len(r.objects[ref].Owned) > len(before[ref].Owned) {
			before[ref] = r.objects[ref]
		}
	}
	lost, began, last := 0, time.Now(), time.Now()
	for i := range s.Count {
		last = time.Now()
		r.become(func() {
			for at, ref := range all {
				o := r.objects[ref]
				if at < few || at%s.Count != i {
					continue
				}
				o.Owned = o.Owned[:len(o.Owned)-1]
				lost++
				if r.objects[ref] = o; len(o.Owned) == 0 && s.Keep {
					delete(r.objects, ref)
				}
			}
		}, notice{})
		time.Sleep(s.Wait)
	}
	p.settle()
	for _, w := range list {
		if w.isDrop(lost) && last.Sub(began) < w.hold.For && time.Since(began) < w.hold.For {
			p.mustHaveAll(w, last, fmt.Sprintf("lost %d endpoints in %d listings within %s", lost, s.Count, last.Sub(began)))
		}
	}
}

// halves has a registry list one half of each service's endpoints, and then the other, and so on.
func (p *play) halves(s step) {
	at := p.readBy(s)
	list := p.watch(at, s.Objects)
	p.calm = false
	r, all := p.registries[at], map[model.Ref]model.Object{}
	fewer := 0 // endpoints that every listing lacks at least
	for _, ref := range r.own() {
		o := r.objects[ref]
		all[ref] = o
		fewer += len(o.Owned) / 2
	}
	last := time.Now()
	for i := range s.Count {
		last = time.Now()
		r.become(func() {
			for ref, o := range all {
				now := o
				now.Owned = nil
				for n, e := range o.Owned {
					if n%2 != i%2 {
						now.Owned = append(now.Owned, e)
					}
				}
				r.objects[ref] = now
			}
		}, notice{})
		time.Sleep(s.Wait)
	}
	p.settle()
	for _, w := range list {
		if w.isDrop(fewer) {
			p.mustHaveAll(w, last, fmt.Sprintf("lists another half every %s", s.Wait))
		}
	}
	maps.Copy(p.before[at], all)
}

// rollout replaces the endpoints of a service, a quarter at a time: the new ones come before
// the old ones go, or after. That is no drop.
func (p *play) rollout(s step) {
	at := p.readBy(s)
	list := p.watch(at, s.Objects)
	p.calm = false
	r := p.registries[at]
	refs := slices.DeleteFunc(r.own(), func(ref model.Ref) bool { return len(r.objects[ref].Owned) == 0 })
	if len(refs) == 0 {
		return
	}
	ref := refs[s.Which%len(refs)]
	was := r.objects[ref].Owned
	batch, last := (len(was)+3)/4, time.Now()
	become := func(change func(o *model.Object)) {
		last = time.Now()
		r.become(func() {
			o := r.objects[ref]
			o.Owned = slices.Clone(o.Owned)
			change(&o)
			r.objects[ref] = o
		}, notice{})
		time.Sleep(s.Wait)
	}
	for old := range slices.Chunk(was, batch) {
		leave := func(o *model.Object) { o.Owned = o.Owned[len(old):] }
		come := func(o *model.Object) {
			for _, e := range old {
				p.fresh++
				e.Name = fmt.Sprint(ref.Name, "/fresh-", p.fresh)
				spec, _ := e.Spec.(model.Endpoint)
				spec.Address = fmt.Sprintf("10.0.%d.%d", 2+p.fresh/250, p.fresh%250)
				e.Spec = spec
				o.Owned = append(o.Owned, e)
			}
		}
		if s.Keep {
			become(come)
			become(leave)
		} else {
			become(leave)
			become(come)
		}
	}
	p.settle()
	for _, w := range list {
		if batch == len(was) || w.isDrop(batch) || !p.listedSince(w.name, last) {
			continue
		}
		for r := range p.stored.List(model.Filter{Kind: model.KindHold, Source: w.name}) {
			p.Fatalf("a rollout of %s is held: %+v", ref.Key, r.Spec)
		}
	}
}

// comeBack has a registry list again what waves took, or every other endpoint of it.
func (p *play) comeBack(s step) {
	r, before := p.registries[s.Registry], p.before[s.Registry]
	r.become(func() {
		for ref, o := range before {
			if len(r.objects[ref].Owned) >= len(o.Owned) {
				continue
			}
			if s.Keep {
				var half []model.Record
				for i, e := range o.Owned {
					if i%2 == 0 {
						half = append(half, e)
					}
				}
				o.Owned = half
			}
			r.objects[ref] = o
		}
		clear(before)
	}, notice{})
}
