package supervise

import (
	"context"

	"github.com/isthmus-mesh/isthmus/source"
)

var _ source.Judge = (*Supervisor)(nil)

// Release deletes the held records by order of an operator, in one commit. It returns
// their number, including endpoints that baselines keep. The source is asked to list
// after that, for held records may be back without a report. It may be called from
// anywhere, whether the source runs or not.
func (s *Supervisor) Release(ctx context.Context) (released int, err error) {
	if d := s.departure.Load(); d != nil && d.Release != nil {
		return d.Release(ctx)
	}
	done, err := s.mirror.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	kept, _ := s.mirror.baselines.Kept()
	released, err = s.mirror.release(ctx, kept)
	if err != nil {
		return 0, err
	}
	s.status.released(s.mirror.counts())
	if released > 0 {
		s.cfg.Log.Info("held records are released", "source", s.mirror.source, "count", released)
	}
	return released + kept, nil
}

// Offer implements [source.Judge]. The judgement is stored in the source's mark: at once
// if the source was listed since the start, else with its first listing. Until every
// loss is confirmed the source is asked to list again. Further losses are judged as
// if the held objects of the baseline were held in the store.
func (s *Supervisor) Offer(ctx context.Context, b source.Baseline) error {
	done, err := s.mirror.lock(ctx)
	if err != nil {
		return err
	}
	defer done()
	s.mirror.baselines.Offer(b, s.cfg.Only)
	if s.mirror.listed {
		return s.mirror.remark(ctx, s.status.get().Rejected)
	}
	return nil
}

// Succeed takes over the baselines from a supervisor of the same source that has
// returned. It comes before Run, and fails only if ctx ends.
func (s *Supervisor) Succeed(ctx context.Context, before *Supervisor) error {
	done, err := before.mirror.lock(ctx)
	if err != nil {
		return err
	}
	defer done()
	s.mirror.inherit(before.mirror)
	return nil
}

// Depart sets the departure that Status shows; nil for a source that stays in the
// configuration.
func (s *Supervisor) Depart(d *HeldStatus) { s.departure.Store(d) }
