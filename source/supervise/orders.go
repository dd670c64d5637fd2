package supervise

import (
	"context"
	"fmt"
	"time"

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
	if s.mirror.order.Load() != nil {
		if err := storeOrder(ctx, s.mirror.store, s.mirror.source, time.Time{}); err != nil {
			return 0, err
		}
		s.mirror.obey(nil)
	}
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

// HoldFor orders, for a registry under maintenance, that nothing is removed that listings
// lack, for at most [LongestOrder]. Additions, changes, and deletions that the registry
// reports one by one go on. The order survives a restart if the source was listed before. It
// ends by itself or with [Supervisor.Release]; the next listing is then judged as any other.
func (s *Supervisor) HoldFor(ctx context.Context, d time.Duration) (until time.Time, err error) {
	if s.departure.Load() != nil {
		return time.Time{}, fmt.Errorf("source %s is not in the configuration any more", s.mirror.source)
	}
	done, err := s.mirror.lock(ctx)
	if err != nil {
		return time.Time{}, err
	}
	defer done()
	now := stamp()
	o := &order{now, now.Add(min(d, LongestOrder)).Truncate(time.Second)}
	if err := storeOrder(ctx, s.mirror.store, s.mirror.source, o.until); err != nil {
		return time.Time{}, err
	}
	s.mirror.obey(o)
	s.cfg.Log.Info("an operator holds the source", "source", s.mirror.source, "until", o.until)
	return o.until, nil
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
	switch {
	case !s.mirror.listed:
		return nil
	case s.mirror.order.Load().holds(time.Now()): // the listing that follows it judges
		s.mirror.obeyed(true, true)
		s.mirror.asked(false)
		return nil
	}
	return s.mirror.remark(ctx, s.status.get().Rejected)
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
