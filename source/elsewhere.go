package source

import (
	"context"
	"fmt"
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
	s.offered(s.confined(b))
	if s.listed {
		return s.remark(ctx)
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
	s.inherited(&before.state)
	for _, f := range s.baselines {
		for i := range f.pending {
			f.pending[i] = s.confined(f.pending[i])
		}
	}
	return nil
}

// judged returns what is known of baselines once they have been judged.
func (s *Supervisor) judged(stored Lister, in facts) []*baselineState {
	if len(s.baselines) == 0 {
		return nil
	}
	subjects := map[model.Ref]bool{}
	for _, f := range s.baselines {
		f.subjects(subjects)
	}
	var present presence
	if len(subjects) > 0 {
		present = presenceOf(stored, subjects)
	}
	has := stock{endpoints: s.index.endpoints(), services: s.index.services()}
	next := make([]*baselineState, len(s.baselines))
	for i, f := range s.baselines {
		next[i] = f.clone()
		next[i].judge(s.name, present, has, s.cfg.Hold, in)
	}
	return next
}

// markWrites has the mark of the source say what was decided about baselines. It
// creates the mark only with a listing, for it says that there has been one.
func (s *Supervisor) markWrites(baselines []*baselineState, listed bool) []model.Write {
	var list []model.Judgement
	for _, f := range baselines {
		if len(f.with) > 0 {
			list = append(list, f.judgement())
		}
	}
	have, stored := s.find(markRef(s.name))
	mark, _ := have.Spec.(model.SourceMark) // of which others write the departure
	mark.Judgements = model.JudgementsOf(list...)
	want := model.Record{Ref: markRef(s.name), Spec: mark}
	if !stored && !listed || stored && want.SameContent(have) {
		return nil
	}
	want.UID, want.Revision, want.Generation = have.UID, have.Revision, have.Generation
	return []model.Write{{Record: want}}
}

// remark judges what is pending by the last listing, and has the store say what
// was decided.
func (s *Supervisor) remark(ctx context.Context) (err error) {
	for range commitTries {
		epoch := s.store.At().Epoch
		baselines := s.judged(s.store, facts{unread: unread(s.Status().Rejected), edited: s.cfg.Edited, now: time.Now()})
		writes := s.markWrites(baselines, false)
		if len(writes) > 0 {
			if _, err = s.store.Commit(ctx, model.Commit{Writes: writes, Epoch: epoch}); err != nil {
				continue
			}
		}
		s.decided(plan{}, baselines)
		s.asked(false)
		return nil
	}
	return fmt.Errorf("store what was decided about source %s: %w", s.name, err)
}

// kept counts the endpoints that others keep, and those whose loss is suspected.
func (s *Supervisor) kept() (endpoints, suspected int) {
	for _, f := range s.baselines {
		e, x := f.kept()
		endpoints, suspected = endpoints+e, suspected+x
	}
	return endpoints, suspected
}

// releasedOf returns baselines of which nothing is held any more.
func releasedOf(baselines []*baselineState) []*baselineState {
	next := make([]*baselineState, len(baselines))
	for i, f := range baselines {
		next[i] = f.released()
	}
	return next
}
