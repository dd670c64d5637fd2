// Package baseline offers the API server's objects of each source to the judge of that source,
// so that a suspicious first listing deletes nothing. It writes nothing to the API server; see
// [Baselines] for goroutines.
package baseline

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/observed"
	"github.com/isthmus-mesh/isthmus/output/istio/plan"
	"github.com/isthmus-mesh/isthmus/output/istio/translate"
	"github.com/isthmus-mesh/isthmus/source"
)

// Baselines offers the API server's objects of each source to its judge, whether or not
// this replica writes: the next leader then already knows the confirmed ones. [Baselines.Leave],
// [Baselines.Wake] and [Baselines.Facts] may be called from any goroutine, all other methods
// from one.
type Baselines struct {
	Name   string // identifies the API server's objects, for this process alone
	judge  source.Judge
	stored *observed.Objects
	kinds  translate.Settings
	log    *slog.Logger

	facts atomic.Pointer[plan.SourceFacts]
	// offered is the sources offered together with each source. reported is since when each
	// source has held objects.
	offered  map[string]map[string]bool
	reported map[string]time.Time

	mu    sync.Mutex    // guards left
	left  []string      // sources that have left, and are not handled yet
	woken chan struct{} // holds a token when the state of a source has changed
}

// New returns baselines of own objects for a judge, which may be nil. restored
// names the sources with restored records at the start.
func New(name string, judge source.Judge, stored *observed.Objects, kinds translate.Settings, restored []string, log *slog.Logger) *Baselines {
	b := &Baselines{
		Name: name, judge: judge, stored: stored, kinds: kinds, log: log,
		offered: map[string]map[string]bool{}, reported: map[string]time.Time{}, woken: make(chan struct{}, 1),
	}
	b.facts.Store(&plan.SourceFacts{Restored: restored, Left: map[string]bool{}})
	return b
}

// Facts returns the newest facts about the sources.
func (b *Baselines) Facts() *plan.SourceFacts { return b.facts.Load() }

// Leave records that a source has left the configuration, or was replaced by another of the
// same name. It does not block.
func (b *Baselines) Leave(source string) {
	b.mu.Lock()
	b.left = append(b.left, source)
	b.mu.Unlock()
	b.Wake()
}

// Wake requests a look at the marks of the sources.
func (b *Baselines) Wake() {
	select {
	case b.woken <- struct{}{}:
	default: // a look is already requested
	}
}

// Woken has a token when a look is requested.
func (b *Baselines) Woken() <-chan struct{} { return b.woken }

// TakeLeave handles the sources that have left, and reports whether there were any. A source
// that comes back counts as another one, and has to be listed first.
func (b *Baselines) TakeLeave() bool {
	b.mu.Lock()
	left := b.left
	b.left = nil
	b.mu.Unlock()
	if len(left) == 0 {
		return false
	}
	before := b.facts.Load()
	now := &plan.SourceFacts{Left: maps.Clone(before.Left)}
	now.Restored = slices.DeleteFunc(slices.Clone(before.Restored), func(name string) bool { return slices.Contains(left, name) })
	for _, name := range left {
		now.Left[name] = true
		delete(b.offered, name)
	}
	b.facts.Store(now)
	return true
}

// Offer offers the baselines that are still due. An object of one source is due when the
// source has been listed. An object of several is due when all of them have been.
func (b *Baselines) Offer(ctx context.Context, f *plan.Facts) {
	if b.judge == nil {
		return
	}
	judged := map[string][]string{} // by source: the sources compared together with it
	for _, name := range f.Sources {
		if j, ok := f.Judgement(name); ok {
			judged[name] = j.With
		} else if _, marked := f.Mark(name); !marked {
			delete(b.offered, name)
		}
	}
	for _, name := range f.Sources {
		if _, marked := f.Mark(name); !marked {
			continue
		}
		before := b.offered[name]
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
		due := source.Baseline{Name: b.Name, Source: name, With: with, Where: "that are written here"}
		if !slices.Contains(f.Known.Restored, name) {
			due.Objects = b.objects(f, name, before, with)
		}
		if b.judge.Offer(ctx, due) != nil {
			return // ctx has ended
		}
		if before == nil {
			before = map[string]bool{name: true}
			b.offered[name] = before
		}
		for _, other := range with {
			before[other] = true
		}
	}
}

// objects returns the objects of a source that belong only to given other sources, and were
// not offered before.
func (b *Baselines) objects(f *plan.Facts, name string, before map[string]bool, with []string) (list []source.BaselineObject) {
	for key := range b.stored.Keys() {
		if b.kinds.WhyRetired(key.Kind) != "" || key.Kind == object.DestinationRule {
			continue // no source is asked about a retired kind, or twice about a service
		}
		var last source.BaselineObject
		for _, o := range b.stored.Of(key) {
			names, _ := f.SourcesOf(o)
			fresh := before == nil
			known := slices.Contains(names, name)
			for _, other := range names {
				now := slices.Contains(with, other)
				fresh = fresh || now
				known = known && (now || before[other] || other == name)
			}
			if known && fresh {
				item := plan.SubjectOf(o.About())
				if o.Kind == object.WorkloadEntry && item.Name == last.Name { // there may be thousands
					list[len(list)-1].Endpoints = append(list[len(list)-1].Endpoints, o.Sockets...)
					continue
				}
				last = source.BaselineObject{
					Kind: item.Kind, Namespace: item.Namespace, Name: item.Name, Object: o.About().String(), Endpoints: slices.Clone(o.Sockets),
				}
				list = append(list, last)
			}
		}
	}
	return list
}

// Report logs once when missing objects begin to be left in the API server, and when that
// ends.
func (b *Baselines) Report(f *plan.Facts) {
	for _, name := range f.Sources {
		drops, since, reason := f.HeldOf(name)
		was, held := b.reported[name]
		switch {
		case drops > 0 && (!held || !was.Equal(since)):
			b.log.Warn("suspicious first listing: objects that it lacks are not deleted from the API server", "source", name, "drops", drops, "reason", reason)
			b.reported[name] = since
		case drops == 0 && held:
			b.log.Info("the source was confirmed: objects that it lacks may be deleted from the API server", "source", name)
			delete(b.reported, name)
		}
	}
}

// Settled reports whether every possible judgement about the listed sources exists.
func (b *Baselines) Settled(f *plan.Facts) bool {
	if b.judge == nil {
		return true
	}
	var listed []string
	for _, name := range f.Sources {
		if _, ok := f.Mark(name); ok {
			listed = append(listed, name)
		}
	}
	return !slices.ContainsFunc(listed, func(name string) bool {
		j, _ := f.Judgement(name)
		return slices.ContainsFunc(listed, func(other string) bool { return !slices.Contains(j.With, other) })
	})
}
