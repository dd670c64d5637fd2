package laws_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/isthmus-mesh/isthmus/app"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// offer is a baseline that was handed over: what another system has of a source.
// It is judged with the next listing, or at once if there was one since the start.
type offer struct {
	source.Baseline
	judged bool
	at     time.Time       // when it was
	held   map[string]bool // what must not be taken away there
	eased  bool            // some of that is there again, or an operator gave it up
	least  time.Duration   // how long it is held
	loose  bool            // of what it was compared with some may have been gone
}

// hand hands over what another system has of a source: what its registry says,
// without some of it, and with more.
func (p *play) hand(s step) {
	p.settle()
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.DeleteFunc(slices.Clone(p.present), func(m *seat) bool { return m.halted })
	if len(at) == 0 {
		return
	}
	of := at[s.Which%len(at)]
	r := p.registries[of.Registry]
	objects := slices.Clone(s.Objects)
	for i, ref := range r.refs() {
		if (i+s.Which)%4 > 0 {
			objects = append(objects, r.objects[ref])
		}
	}
	var with []string
	for _, m := range p.present {
		if s.Keep && m != of && p.primed(m.Name) {
			with = append(with, m.Name)
		}
	}
	p.offer(p.process.App, of.Name, with, objects)
}

// handOver hands a process that does not run yet what another system has kept
// of the sources since the process before: nothing of it was listed by then.
func (p *play) handOver(a *app.App) {
	p.offers = nil
	if !p.script.Kept {
		return
	}
	for _, m := range p.present {
		if kept := p.kept[m.Name]; len(kept) > 0 {
			p.offer(a, m.Name, nil, kept)
		}
	}
}

// keep notes what another system has got by now.
func (p *play) keep() {
	p.mu.Lock() // readers go on until the process ends
	defer p.mu.Unlock()
	p.kept = map[string][]model.Object{}
	for name, m := range p.mirrors {
		for _, ref := range slices.SortedFunc(maps.Keys(m.objects), model.Ref.Compare) {
			o := model.Object{Record: m.objects[ref].record}
			for _, part := range slices.SortedFunc(maps.Keys(m.objects[ref].owned), model.Ref.Compare) {
				o.Owned = append(o.Owned, m.objects[ref].owned[part])
			}
			p.kept[name] = append(p.kept[name], o)
		}
	}
}

func (p *play) offer(a *app.App, name string, with []string, objects []model.Object) {
	p.handed++
	o := &offer{Baseline: source.Baseline{Name: fmt.Sprint("baseline-", p.handed), Source: name, With: with, Where: "that are kept"}, least: time.Hour}
	for _, kept := range objects {
		o.Objects = append(o.Objects, baselineOf(kept)...)
	}
	for i := range o.Objects { // each is an object of its own, whatever it speaks of
		o.Objects[i].Object += " " + strconv.Itoa(i)
	}
	p.offers = append(p.offers, o)
	if err := a.Inside().Judge.Offer(context.Background(), o.Baseline); err != nil {
		p.Fatalf("a baseline of %s: %v", name, err)
	}
	if p.mirrors[name].listed {
		p.judge(o)
	}
}

func baselineOf(o model.Object) (list []source.BaselineObject) {
	ref := o.Record.Ref
	switch spec := o.Record.Spec.(type) {
	case model.Scope:
		list = append(list, source.BaselineObject{Kind: model.KindScope, Namespace: ref.Namespace, Name: ref.Name, Object: "Sidecar"})
	case model.Service:
		for host := range spec.Hosts.All() {
			b := source.BaselineObject{Kind: model.KindService, Namespace: ref.Namespace, Name: nameOf(host), Object: "ServiceEntry"}
			for _, r := range o.Owned {
				b.Endpoints = append(b.Endpoints, sockets(spec, r.Spec.(model.Endpoint))...)
			}
			list = append(list, b)
		}
	}
	return list
}

// lookAtOffers makes sure that every baseline is judged exactly if its source
// was listed since the start, and that of what is missing nothing is given up
// before its time. Nothing is kept for ever, either.
func (p *play) lookAtOffers(end bool) {
	for _, o := range p.offers {
		got, judged := p.judgement(o)
		if judged != o.judged {
			p.Fatalf("%s of %s is judged: %t; it should be: %t", o.Name, o.Source, judged, o.judged)
		}
		if !judged {
			continue
		}
		if o.loose {
			o.held, o.loose, o.eased = got, false, true
		}
		for item := range got {
			if !o.held[item] {
				p.Fatalf("of %s of %s %s is held, though it is not missing, or too little is", o.Name, o.Source, item)
			}
		}
		for item := range o.held {
			if !got[item] && !o.eased && time.Since(o.at) < o.least {
				p.Fatalf("of %s of %s %s is given up %s after it was found missing", o.Name, o.Source, item, time.Since(o.at))
			}
		}
		if o.held = got; end && len(got) > 0 {
			p.Fatalf("of %s of %s %v is held for ever", o.Name, o.Source, got)
		}
	}
}

// judgement is what the mark of a source says of a baseline.
func (p *play) judgement(o *offer) (held map[string]bool, judged bool) {
	mark, _ := p.mark(o.Source)
	j, judged := mark.Judgements.Of(o.Name)
	for _, name := range append(o.With, o.Source) {
		if judged && !slices.Contains(j.With, name) {
			p.Fatalf("the judgement of %s is not with %s: %v", o.Name, name, j.With)
		}
	}
	held = map[string]bool{}
	for _, drop := range j.Held {
		for _, i := range drop.Items {
			object := subject(i.Kind, i.Namespace, i.Name)
			if i.Whole {
				held[object] = true
			}
			for _, socket := range i.Endpoints {
				held[fmt.Sprint(object, " ", socket)] = true
			}
		}
	}
	return held, judged
}

func (p *play) mark(name string) (mark model.SourceMark, some bool) {
	for r := range p.stored.List(model.Filter{Kind: model.KindSource, Source: name}) {
		mark, some = r.Spec.(model.SourceMark)
	}
	return mark, some
}

// suspected is how many endpoints another system keeps that a source may have
// lost: it counts as having lost them.
func (p *play) suspected(name string) (n int) {
	mark, _ := p.mark(name)
	for _, o := range p.offers {
		if j, ok := mark.Judgements.Of(o.Name); ok && o.Source == name {
			for _, drop := range j.Held {
				for _, i := range drop.Items {
					n += btoi(!drop.Lasting) * len(i.Endpoints)
				}
			}
		}
	}
	return n
}
