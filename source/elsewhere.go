package source

import (
	"context"
	"fmt"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

var _ Judge = (*Supervisor)(nil)

// Offer implements [Judge]. The judgement is stored in the source's mark: at once if
// the source was listed since the start, else with its first listing. Until every
// loss is confirmed the source is asked to list again. Further losses are judged as
// if the held objects of the baseline were held in the store.
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

// Succeed takes over the baselines from a supervisor of the same source that has
// returned. It comes before Run, and fails only if ctx ends.
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

// judged returns copies of the baseline states after a judgement.
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

// markWrites returns the write that stores judgements of baselines in the source's
// mark. Only a listing creates the mark, which proves that there has been one.
func (s *Supervisor) markWrites(baselines []*baselineState, listed bool) []model.Write {
	var list []model.Judgement
	for _, f := range baselines {
		if len(f.with) > 0 {
			list = append(list, f.judgement())
		}
	}
	have, stored := s.find(markRef(s.name))
	mark, _ := have.Spec.(model.SourceMark) // others write its departure
	mark.Judgements = model.JudgementsOf(list...)
	want := model.Record{Ref: markRef(s.name), Spec: mark}
	if !stored && !listed || stored && want.SameContent(have) {
		return nil
	}
	want.UID, want.Revision, want.Generation = have.UID, have.Revision, have.Generation
	return []model.Write{{Record: want}}
}

// remark judges pending baselines by the last listing, and stores the judgements.
func (s *Supervisor) remark(ctx context.Context) (err error) {
	for range commitTries {
		baselines := s.judged(s.store, facts{unread: unread(s.Status().Rejected), edited: s.cfg.Edited, now: time.Now()})
		writes := s.markWrites(baselines, false)
		if len(writes) > 0 {
			if _, err = s.store.Commit(ctx, model.Commit{Writes: writes}); err != nil {
				continue
			}
		}
		s.decided(plan{}, baselines)
		s.asked(false)
		return nil
	}
	return fmt.Errorf("store what was decided about source %s: %w", s.name, err)
}

// kept counts the endpoints held for baselines, and the ones with a suspected loss.
func (s *Supervisor) kept() (endpoints, suspected int) {
	for _, f := range s.baselines {
		e, x := f.kept()
		endpoints, suspected = endpoints+e, suspected+x
	}
	return endpoints, suspected
}

// releasedOf returns baseline states without holds.
func releasedOf(baselines []*baselineState) []*baselineState {
	next := make([]*baselineState, len(baselines))
	for i, f := range baselines {
		next[i] = f.released()
	}
	return next
}
