package istio

import (
	"context"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/source"
)

// RemoveSource records that a source has left the configuration, or was replaced by another
// of the same name: nothing has to wait for it. It does not block.
func (w *Writer) RemoveSource(source string) {
	w.leftMu.Lock()
	w.left = append(w.left, source)
	w.leftMu.Unlock()
	w.wake()
}

// wake requests a look at the marks of the sources.
func (w *Writer) wake() {
	select {
	case w.woken <- struct{}{}:
	default: // a look is already requested
	}
}

// compare offers the API server's objects of each source as baselines, whether or not this
// replica writes: the next leader then already knows the confirmed ones.
func (w *Writer) compare(ctx context.Context) {
	if !w.waitPrimed(ctx) {
		return
	}
	for {
		w.takeLeave()
		w.offer(ctx)
		w.report()
		select {
		case <-ctx.Done():
			return
		case <-w.woken:
		}
	}
}

// takeLeave records the sources that have left. A source that comes back counts as another
// one, and has to be listed first.
func (w *Writer) takeLeave() {
	w.leftMu.Lock()
	left := w.left
	w.left = nil
	w.leftMu.Unlock()
	if len(left) == 0 {
		return
	}
	before := w.sourceFacts.Load()
	t := &sourceFacts{left: maps.Clone(before.left)}
	t.restored = slices.DeleteFunc(slices.Clone(before.restored), func(name string) bool { return slices.Contains(left, name) })
	for _, name := range left {
		t.left[name] = true
		delete(w.offered, name)
	}
	w.sourceFacts.Store(t)
	w.review()
}

// offer offers the baselines that are still due. An object of one source is due when the
// source has been listed. An object of several is due when all of them have been.
func (w *Writer) offer(ctx context.Context) {
	if w.options.Judge == nil {
		return
	}
	world := w.look()
	judged := map[string][]string{} // by source: the sources compared together with it
	for _, name := range w.sources() {
		if j, ok := w.judgement(world, name); ok {
			judged[name] = j.With
		} else if _, marked := world.Mark(name); !marked {
			delete(w.offered, name)
		}
	}
	for _, name := range w.sources() {
		if _, marked := world.Mark(name); !marked {
			continue
		}
		before := w.offered[name]
		var with []string
		for other := range judged {
			if other != name && !before[other] {
				with = append(with, other)
			}
		}
		if before != nil && len(with) == 0 {
			continue
		}
		slices.Sort(with)
		b := source.Baseline{Name: w.baseline, Source: name, With: with, Where: "that are written here"}
		if !slices.Contains(world.sourceFacts.restored, name) {
			b.Objects = w.objects(world, name, before, with)
		}
		if w.options.Judge.Offer(ctx, b) != nil {
			return // ctx has ended
		}
		if before == nil {
			before = map[string]bool{name: true}
			w.offered[name] = before
		}
		for _, other := range with {
			before[other] = true
		}
	}
}

// objects returns the objects of a source that belong only to given other sources, and were
// not offered before.
func (w *Writer) objects(world *world, name string, before map[string]bool, with []string) (list []source.BaselineObject) {
	for key := range w.view.keys() {
		if w.config.isRetired(key.Kind) {
			continue // no source is asked about a retired kind
		}
		var last source.BaselineObject
		for _, o := range w.view.of(key) {
			names, _ := w.speakers(world, o)
			fresh := before == nil
			known := slices.Contains(names, name)
			for _, other := range names {
				now := slices.Contains(with, other)
				fresh = fresh || now
				known = known && (now || before[other] || other == name)
			}
			if known && fresh {
				item := subjectOf(o.about())
				if o.Kind == WorkloadEntry && item.Name == last.Name { // there may be thousands
					list[len(list)-1].Endpoints = append(list[len(list)-1].Endpoints, o.sockets...)
					continue
				}
				last = source.BaselineObject{
					Kind: item.Kind, Namespace: item.Namespace, Name: item.Name, Object: o.about().String(), Endpoints: slices.Clone(o.sockets),
				}
				list = append(list, last)
			}
		}
	}
	return list
}

// report logs once when missing objects begin to be left in the API server, and when that
// ends.
func (w *Writer) report() {
	world := w.look()
	for _, name := range w.sources() {
		drops, since, reason := w.heldOf(world, name)
		was, held := w.reported[name]
		switch {
		case drops > 0 && (!held || !was.Equal(since)):
			w.log.Warn("a suspicious first listing: what it lacks is left in the API server", "source", name, "drops", drops, "reason", reason)
			w.reported[name] = since
		case drops == 0 && held:
			w.log.Info("what was left in the API server need not stay any more", "source", name)
			delete(w.reported, name)
		}
	}
}

// settled reports whether every possible judgement about the listed sources exists.
func (w *Writer) settled(world *world) bool {
	var listed []string
	for _, name := range w.sources() {
		if _, ok := world.Mark(name); ok {
			listed = append(listed, name)
		}
	}
	return !slices.ContainsFunc(listed, func(name string) bool {
		j, _ := w.judgement(world, name)
		return slices.ContainsFunc(listed, func(other string) bool { return !slices.Contains(j.With, other) })
	})
}

// awaitJudgement waits for all judgements: for a rehearsal, which looks once.
func (w *Writer) awaitJudgement(ctx context.Context) error {
	if w.options.Judge == nil {
		return nil
	}
	for !w.settled(w.look()) {
		w.offer(ctx)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.woken:
		}
	}
	return nil
}
