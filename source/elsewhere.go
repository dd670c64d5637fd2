package source

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

var _ Judge = (*Supervisor)(nil)

// Offer implements [Judge]. What is decided is in the source's mark: at once if
// the source was listed since the start, else with its first listing. Until
// everything is confirmed the source is asked to list again, and what it loses
// besides is judged as if that were held in the store.
func (s *Supervisor) Offer(ctx context.Context, b Baseline) error {
	done, err := s.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	at := slices.IndexFunc(s.elsewhere, func(f *foreign) bool { return f.name == b.Name })
	if at < 0 {
		at = len(s.elsewhere)
		s.elsewhere = append(s.elsewhere, newForeign(b.Name))
	}
	s.elsewhere[at].waiting = append(s.elsewhere[at].waiting, b)
	if s.listed {
		return s.judge(ctx, false)
	}
	return nil
}

// Succeed takes over what others have of the source from a supervisor of it that
// has returned. It comes before Run, and fails only if ctx ends.
func (s *Supervisor) Succeed(ctx context.Context, before *Supervisor) error {
	done, err := before.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	s.elsewhere, s.listed = before.elsewhere, before.listed
	return nil
}

// judge decides about what others have, and has the mark say what was decided.
func (s *Supervisor) judge(ctx context.Context, listing bool) error {
	subjects := map[model.Ref]bool{}
	for _, f := range s.elsewhere {
		f.subjects(subjects)
	}
	if len(s.elsewhere) == 0 {
		return nil
	}
	var all said
	if len(subjects) > 0 {
		all = saidOf(s.store, subjects)
	}
	unread := len(s.Status().Refused) > 0
	for _, f := range s.elsewhere {
		f.judge(s.name, all, stock{endpoints: s.index.endpoints(), services: s.index.services()}, s.cfg.Hold, listing, unread, time.Now())
	}
	s.ask(false)
	return s.remark(ctx)
}

// mark is what the mark of the source says.
func (s *Supervisor) mark() model.SourceMark {
	var list []model.Judgement
	for _, f := range s.elsewhere {
		if len(f.with) > 0 {
			list = append(list, f.judgement())
		}
	}
	return model.SourceMark{Judgements: model.JudgementsOf(list...)}
}

// remark has the store say what was decided.
func (s *Supervisor) remark(ctx context.Context) error {
	var err error
	for range commitTries {
		for rec := range s.store.List(model.Filter{Kind: model.KindSource, Source: s.name}) {
			mark := s.mark()
			if mark.EqualSpec(rec.Spec) {
				return nil
			}
			rec.Spec = mark
			if _, err = s.store.Commit(ctx, model.Commit{Writes: []model.Write{{Record: rec}}}); err == nil {
				return nil
			}
		}
	}
	if err != nil {
		return fmt.Errorf("store what was decided about source %s: %w", s.name, err)
	}
	return nil
}

// kept counts the endpoints that others keep, and those whose loss is suspected.
func (s *Supervisor) kept() (endpoints, suspected int) {
	for _, f := range s.elsewhere {
		e, x := f.kept()
		endpoints, suspected = endpoints+e, suspected+x
	}
	return endpoints, suspected
}

// letGo has nothing kept elsewhere any more, at an operator's word.
func (s *Supervisor) letGo() {
	for _, f := range s.elsewhere {
		next := newForeign(f.name)
		next.waiting, next.with, next.where, next.had = f.waiting, f.with, f.where, f.had
		*f = *next
	}
}

// ask has the source asked to list again while anything is held, counted from
// its last complete listing.
func (s *Supervisor) ask(listed bool) {
	held := !s.holds.empty() || slices.ContainsFunc(s.elsewhere, func(f *foreign) bool { return !f.holds.empty() })
	switch {
	case !held:
		s.relist.Stop()
	case listed || !s.asking:
		s.relist.Reset(s.cfg.Hold.interval())
	}
	s.asking = held
}
