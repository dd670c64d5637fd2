package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/store"
)

// lawWritten is the written source of all histories.
const lawWritten = source.ReservedPrefix + "law"

// writer is one of two who write to it. The first stands for what it writes by
// its lease; what the second writes stands by itself.
type writer struct {
	lease string
	epoch uint64 // that it read in
	knows map[model.Ref]model.Record
}

// reread makes a writer know what is stored.
func (w *writer) reread(s lawStore) {
	w.epoch, w.knows = s.At().Epoch, written(s)
}

func written(s lawStore) map[model.Ref]model.Record {
	all := map[model.Ref]model.Record{}
	for r := range s.List(model.Filter{Source: lawWritten}) {
		if r.Kind != model.KindSource {
			all[r.Ref] = r
		}
	}
	return all
}

// commit is what makes an object what the writer wants, or makes it go, by what
// it knows.
func (w *writer) commit(o source.Object, gone bool) model.Commit {
	c := model.Commit{Epoch: w.epoch}
	wanted := map[model.Ref]bool{}
	add := func(r, owner model.Record) {
		r.Source = lawWritten
		if r.Owner = owner.Ref; owner.Name != "" {
			r.Owner.Source = lawWritten
		}
		known := w.knows[r.Ref]
		r.UID, r.Revision = known.UID, known.Revision
		wanted[r.Ref] = true
		c.Writes = append(c.Writes, model.Write{Record: r})
	}
	if !gone {
		add(o.Record, model.Record{})
		for _, r := range o.Owned {
			add(r, o.Record)
		}
	}
	of := o.Record.Ref
	of.Source = lawWritten
	for _, ref := range slices.SortedFunc(maps.Keys(w.knows), model.Ref.Compare) {
		if known := w.knows[ref]; !wanted[ref] && (ref == of || known.Owner == of) {
			c.Writes = append(c.Writes, model.Write{Record: known, Delete: true})
		}
	}
	return c
}

// fits reports whether a commit goes by what is stored.
func (p *play) fits(c model.Commit) bool {
	return (c.Epoch == 0 || c.Epoch == p.process.store.At().Epoch) && !slices.ContainsFunc(c.Writes, func(w model.Write) bool {
		is := p.written[w.Record.Ref]
		return w.Record.UID != is.UID || w.Record.Revision != is.Revision
	})
}

// write has a writer write an object, or delete it, by what it knows or by what
// there is. It has to fail exactly if somebody else wrote these records since.
func (p *play) write(s step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := &p.writers[s.Which%len(p.writers)]
	if s.Keep {
		w.reread(p.process.store)
	}
	c := w.commit(s.Objects[0], s.Which >= 6)
	if len(c.Writes) == 0 {
		return
	}
	fits := p.fits(c)
	err := p.send(w, c)
	if _, conflict := errors.AsType[*store.ConflictError](err); err != nil && !conflict || fits != (err == nil) {
		p.Fatalf("a write of %s that fits what is stored: %t; the answer: %v", s.Objects[0].Record.Ref, fits, err)
	}
	if err == nil {
		p.wrote(w, c)
	}
	w.reread(p.process.store)
}

func (p *play) send(w *writer, c model.Commit) error {
	to, err := source.NewWritten(lawWritten, p.process.store, source.WrittenConfig{Lease: w.lease})
	if err == nil {
		_, err = to.Write(context.Background(), c)
	}
	return err
}

// wrote takes note of a commit that was made. Only the versions that the store
// gave are read from it.
func (p *play) wrote(w *writer, c model.Commit) {
	p.written = maps.Clone(p.written)
	for _, write := range c.Writes {
		r := write.Record
		if r.Lease = w.lease; write.Delete {
			delete(p.written, r.Ref)
			continue
		}
		for is := range p.process.store.List(model.Filter{Kind: r.Kind, Source: r.Source, Namespace: r.Namespace, Prefix: r.Name}) {
			if is.Ref == r.Ref {
				r.UID, r.Revision = is.UID, is.Revision
			}
		}
		p.written[r.Ref] = r
	}
	p.noteState()
}

// race has both writers, who know what there is, write an object at the same
// time. The later of two that want something else has to fail.
func (p *play) race(s step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var commits [len(p.writers)]model.Commit
	var failed [len(p.writers)]error
	var both sync.WaitGroup
	for i := range p.writers {
		w, o := &p.writers[i], s.Objects[0]
		w.reread(p.process.store)
		if _, known := w.knows[p.inWritten(o.Record.Ref)]; i == 1 && known {
			commits[i] = w.commit(o, true)
		} else {
			commits[i] = w.commit(o, false)
		}
	}
	for i := range p.writers {
		both.Go(func() { failed[i] = p.send(&p.writers[i], commits[i]) })
	}
	both.Wait()
	won := slices.IndexFunc(failed[:], func(err error) bool { return err == nil })
	if won < 0 || failed[1-won] == nil && p.meet(commits[0], commits[1]) && p.meet(commits[1], commits[0]) {
		p.Fatalf("two write %s at the same time: %v, %v", s.Objects[0].Record.Ref, failed[0], failed[1])
	}
	for i := range p.writers {
		if failed[i] == nil {
			p.wrote(&p.writers[i], commits[i])
		}
	}
}

func (p *play) inWritten(ref model.Ref) model.Ref { ref.Source = lawWritten; return ref }

// meet reports whether a commit changes a record that another goes by.
func (p *play) meet(c, other model.Commit) bool {
	return slices.ContainsFunc(c.Writes, func(w model.Write) bool {
		is, stored := p.written[w.Record.Ref]
		changes := w.Delete || !stored || !is.Spec.EqualSpec(w.Record.Spec)
		return changes && slices.ContainsFunc(other.Writes, func(o model.Write) bool { return o.Record.Ref == w.Record.Ref })
	})
}

// writtenLines is what must be stored of the written source. Nothing of it is held.
func (p *play) writtenLines() (lines []string) {
	for _, r := range p.written {
		lines = append(lines, writtenLine(r))
	}
	return lines
}

func writtenLine(r model.Record) string {
	return fmt.Sprintf("%s: %s, lease %q", r.Source, line(plain(r.Ref), r, false), r.Lease)
}
