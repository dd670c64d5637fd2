package istio

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/controller"
)

// news is what was said of sources and is not heeded yet.
type news struct {
	left, listed, released map[string]bool
}

// Listed says that a source has been listed completely, and that what was
// published has the listing. It is told of every listing, and does not block.
func (w *Writer) Listed(source string) {
	w.tell(func(n *news) { n.listed[source] = true })
}

// Left says that a source is not in the configuration any more, or that what is
// by its name is another one. It does not block.
func (w *Writer) Left(source string) {
	w.tell(func(n *news) { n.left[source] = true })
}

// Released says that an operator wants a source to be believed. It does not block.
func (w *Writer) Released(source string) {
	w.tell(func(n *news) { n.released[source] = true })
}

func (w *Writer) tell(what func(*news)) {
	w.newsMu.Lock()
	defer w.newsMu.Unlock()
	what(&w.news)
	select {
	case w.told <- struct{}{}:
	default: // it will be looked at
	}
}

func (w *Writer) takeNews() news {
	w.newsMu.Lock()
	defer w.newsMu.Unlock()
	n := w.news
	w.news = news{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	return n
}

// heed follows what is said of the sources, whether or not this replica writes:
// the next leader knows by itself what was confirmed.
func (w *Writer) heed(ctx context.Context) {
	if !w.waitPrimed(ctx) {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.told:
		}
		n := w.takeNews()
		for _, source := range slices.Sorted(maps.Keys(n.left)) {
			w.takeLeave(ctx, source)
		}
		for _, source := range slices.Sorted(maps.Keys(n.listed)) {
			w.takeListing(ctx, source)
		}
		for _, source := range slices.Sorted(maps.Keys(n.released)) {
			w.revise(ctx, source, func(*drop) *drop { return nil })
		}
	}
}

// takeListing takes note of one more complete listing of a source.
func (w *Writer) takeListing(ctx context.Context, source string) {
	world, now := w.look(), time.Now()
	if !w.isConfigured(source) {
		return // it has left meanwhile
	}
	if !world.trust.listed[source] {
		w.takeFirst(ctx, world, source, now)
		return
	}
	s := w.guard(source)
	if s == nil {
		return
	}
	unread := s.Unread()
	w.revise(ctx, source, func(d *drop) *drop {
		next := d.after(world, unread, now)
		if len(next.missing) == 0 || !unread && s.Hold().Confirms(next.listings, next.first, now) {
			return nil
		}
		next.lasting = s.Hold().Confirms(next.equal, next.alike, now)
		return next
	})
}

// takeFirst takes note of a source's first listing, for which everything waits
// that the API server has of it.
func (w *Writer) takeFirst(ctx context.Context, world *world, source string, now time.Time) {
	t := *world.trust
	t.listed = maps.Clone(t.listed)
	t.listed[source] = true
	w.adopt(ctx, world, &t, source, now)
}

// takeLeave takes note that nothing has to wait for a source any more. Should it
// come back, it is a new one, and has to be listed first.
func (w *Writer) takeLeave(ctx context.Context, source string) {
	world := w.look()
	t := *world.trust
	t.listed = maps.Clone(t.listed)
	delete(t.listed, source)
	t.restored = slices.DeleteFunc(slices.Clone(t.restored), func(name string) bool { return name == source })
	t.drops = slices.DeleteFunc(slices.Clone(t.drops), func(d *drop) bool { return d.source == source })
	w.adopt(ctx, world, &t, source, time.Now())
}

// adopt has everything looked at again with another trust, and with the drops
// that show now that a source need not be waited for.
func (w *Writer) adopt(ctx context.Context, world *world, t *trust, source string, now time.Time) {
	waited := world.trust.listed
	world.trust = t
	var began []*drop
	if !waited[source] {
		began = w.compare(world, source, now)
		t.drops = slices.Concat(t.drops, began)
	}
	w.trust.Store(t)
	w.review()
	for name, drops := range bySource(began) {
		w.log.Warn("a suspicious first listing: what it lacks is left in the API server",
			"source", name, "drops", len(drops), "reason", drops[0].why())
		w.ask(ctx, name)
	}
}

// revise replaces the drops of a source; nil ends one.
func (w *Writer) revise(ctx context.Context, source string, with func(*drop) *drop) {
	before := w.trust.Load()
	t := &trust{listed: before.listed, restored: before.restored}
	var over []Key
	for _, d := range before.drops {
		if d.source != source {
			t.drops = append(t.drops, d)
		} else if next := with(d); next != nil {
			t.drops = append(t.drops, next)
		} else {
			over = slices.AppendSeq(over, maps.Keys(d.missing))
		}
	}
	if len(before.drops) == 0 {
		return
	}
	w.trust.Store(t)
	if len(over) > 0 {
		w.log.Info("what was left in the API server need not stay any more", "source", source, "services", len(over))
		w.enqueue(controller.Low, over)
	}
	w.ask(ctx, source)
}

// ask tells what a source lacks, so that it is asked to list again.
func (w *Writer) ask(ctx context.Context, source string) {
	endpoints, suspected := 0, 0
	for _, d := range w.trust.Load().drops {
		if d.source != source {
			continue
		}
		endpoints += d.endpoints()
		if !d.lasting {
			suspected += d.endpoints()
		}
	}
	if s := w.guard(source); s != nil {
		_ = s.Lacks(ctx, endpoints, suspected) // it fails only with ctx
	}
}

func bySource(drops []*drop) map[string][]*drop {
	by := map[string][]*drop{}
	for _, d := range drops {
		by[d.source] = append(by[d.source], d)
	}
	return by
}

// takePrimed takes every source that is primed for listed: for a rehearsal,
// which looks once.
func (w *Writer) takePrimed(ctx context.Context) {
	names := map[string]bool{}
	for key := range w.view.keys() {
		for _, o := range w.view.of(key) {
			for _, name := range o.sources() {
				names[name] = w.guard(name) != nil
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if world := w.look(); names[name] && world.Primed(name) {
			w.takeListing(ctx, name)
		}
	}
}
