package sourcetest

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

var errAway = errors.New("the store is away, as drawn")

// guarded is the store, as the supervisor sees it.
type guarded struct {
	Store
	guard *guard
}

// Commit implements [source.Committer].
func (s *guarded) Commit(ctx context.Context, c model.Commit) (uint64, error) {
	before := map[model.Ref]model.Record{}
	for rec := range s.List(model.Filter{Source: listed}) {
		before[rec.Ref] = rec
	}
	if !s.guard.commit(before, c, isRelease(ctx)) {
		return 0, errAway
	}
	revision, err := s.Store.Commit(ctx, c)
	if err == nil && s.guard.forgets() {
		return 0, errAway
	}
	return revision, err
}

// byOperator is the key of a context in which an operator releases held records. On
// the clock of the machine a source may commit at the same time.
type byOperator struct{}

func isRelease(ctx context.Context) bool { return ctx.Value(byOperator{}) != nil }

// commit checks a commit, be it a release or not, and reports whether it is to succeed.
func (g *guard) commit(before map[model.Ref]model.Record, c model.Commit, release bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.away > 0 && !g.afterAll {
		g.away--
		return false
	}
	if g.tolerance == 0 || !onlyMarksStale(before, c) {
		g.commits++ // on the machine's clock, a busy machine may need as long to list as a source has to be stale
	}
	g.log("%d writes", len(c.Writes))
	if outdated(before, c) {
		return true // the store rejects it
	}
	s := stepOf(before, c)
	s.released = release
	g.checkWrites(s)
	g.checkPrimed(s)
	g.checkOwners(s)
	g.checkPoisoned(s)
	g.checkTruth(s)
	g.checkDrop(s)
	g.keep(s)
	return true
}

// outdated reports whether a commit is based on outdated records: its view has
// changed since.
func outdated(before map[model.Ref]model.Record, c model.Commit) bool {
	return slices.ContainsFunc(c.Writes, func(w model.Write) bool { return before[w.Record.Ref].Revision != w.Record.Revision })
}

// onlyMarksStale reports whether a commit changes nothing but since when the source has been stale for long.
func onlyMarksStale(before map[model.Ref]model.Record, c model.Commit) bool {
	if len(c.Writes) != 1 {
		return false
	}
	rec := c.Writes[0].Record
	is, ok := rec.Spec.(model.SourceMark)
	was, had := before[rec.Ref].Spec.(model.SourceMark)
	if !ok || !had || is.EqualSpec(was) {
		return false
	}
	is.StaleSince = was.StaleSince
	return is.EqualSpec(was)
}

// forgets reports whether a successful commit is to be answered with an error.
func (g *guard) forgets() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.away > 0 && g.afterAll {
		g.away--
		return true
	}
	return false
}

// change is one commit: the records before and after it.
type change struct {
	before, after map[model.Ref]model.Record
	writes        []model.Write
	deleted       []model.Record
	was, is       model.Holds
	released      bool // by an operator
}

func stepOf(before map[model.Ref]model.Record, c model.Commit) change {
	s := change{before: before, after: maps.Clone(before), writes: c.Writes}
	for _, w := range c.Writes {
		if have, stored := before[w.Record.Ref]; w.Delete {
			delete(s.after, w.Record.Ref)
			if stored && !w.Record.Kind.Reserved() {
				s.deleted = append(s.deleted, have)
			}
			continue
		}
		s.after[w.Record.Ref] = w.Record
	}
	s.was, s.is = holdsIn(before), holdsIn(s.after)
	return s
}

func holdsIn(records map[model.Ref]model.Record) (h model.Holds) {
	for _, rec := range records {
		h.Add(rec)
	}
	return h
}

// keep stores data for checks of later commits.
func (g *guard) keep(s change) {
	now := time.Now()
	for ref := range s.after {
		if _, stored := s.before[ref]; !stored {
			g.created[ref] = now
		}
	}
}

// storedBy yields the records of the source in a store.
func storedBy(s Store) func() iter.Seq[model.Record] {
	return func() iter.Seq[model.Record] { return s.List(model.Filter{Source: listed}) }
}
