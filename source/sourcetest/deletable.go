package sourcetest

import (
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/hold"
)

// check compares the judgements of baselines with the handed-over objects and the
// listings of the registry.
func (b *baselines) check() {
	for rec := range b.store.List(model.Filter{Kind: model.KindSource, Source: listed}) {
		mark, _ := rec.Spec.(model.SourceMark)
		for j := range mark.Judgements.All() {
			b.checkJudgement(j)
		}
	}
}

func (b *baselines) checkJudgement(j model.Judgement) {
	one := b.bases[j.Baseline]
	listings, change := b.registry.seen()
	switch {
	case one == nil || one.process == 0:
		b.violated("%s is judged, and nobody handed it over: all of it is deletable", j.Baseline)
	case one.process != b.process:
		return // the process that has it is gone
	case listings == 0:
		b.violated("%s is judged, and nothing was listed since the start", j.Baseline)
	}
	held := map[thing]bool{}
	for _, drop := range j.Held {
		for _, item := range drop.Items {
			if item.Whole {
				held[thing{item.Name, 0}] = true
			}
			for _, socket := range item.Endpoints {
				held[thing{item.Name, socket}] = true
			}
		}
	}
	listed := b.listedThings()
	for t := range held {
		if listed[t] {
			b.violated("%s: %v is held, and is listed", j.Baseline, t)
		}
	}
	if one.judged.IsZero() {
		one.judged, one.changes = time.Now(), change
		b.checkFirst(one, held, listed)
	}
	if change == one.changes { // else some may have come back, which changes the judgement of the others
		b.checkReleased(one, held, listed)
	}
	one.held = held
}

// listedThings returns the things of the source in the store, listed or held.
func (b *baselines) listedThings() map[thing]bool {
	all := map[thing]bool{}
	for rec := range b.store.List(model.Filter{Source: listed}) {
		switch spec := rec.Spec.(type) {
		case model.Service:
			all[thing{rec.Name, 0}] = true
		case model.Endpoint:
			all[thing{rec.Owner.Name, source.Socket(spec.Address, "", 0)}] = true
		}
	}
	return all
}

// checkFirst checks that everything a suspicious first listing lacks is held.
func (b *baselines) checkFirst(one *base, held, listed map[thing]bool) {
	var missing []thing
	endpoints, lost, survives := 0, 0, false
	for _, o := range one.Objects {
		for _, socket := range append([]uint64{0}, o.Endpoints...) {
			t := thing{o.Name, socket}
			if socket != 0 {
				endpoints++
			}
			if listed[t] {
				survives = true
				continue
			}
			if missing = append(missing, t); socket != 0 {
				lost++
			}
		}
	}
	if survives && !hold.Default().Suspicious(lost, endpoints) {
		return
	}
	for _, t := range missing {
		if !held[t] {
			b.violated("%s: %v is deletable, though the first listing lacks %d of its %d endpoints", one.Name, t, lost, endpoints)
		}
	}
}

// checkReleased checks that a held thing is released when it is listed again, or
// confirmed as gone, not before.
func (b *baselines) checkReleased(one *base, held, listed map[thing]bool) {
	for t := range one.held {
		if !held[t] && !listed[t] && time.Since(one.judged) < hold.Default().For-time.Second { // a second is the interval of checks
			b.violated("%s: %v is deletable %v after it was first found missing", one.Name, t, time.Since(one.judged))
		}
	}
}

// settled checks that in the end every baseline handed over in this process is
// judged, and no thing is held.
func (b *baselines) settled() {
	for _, name := range b.names() {
		one := b.bases[name]
		if one.process != b.process {
			continue
		}
		if one.judged.IsZero() {
			b.violated("%s was handed over and is not judged", name)
		}
		if len(one.held) > 0 {
			b.violated("%s: %v is held, though the registry has said the same for minutes", name, one.held)
		}
	}
}
