package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/wait"
	"github.com/isthmus-mesh/isthmus/model"
)

// Run saves what is committed until ctx ends, then what was committed up to
// that moment, and lets go of the folder. Whoever commits should have ended
// before. It returns an error only if the last commits could not be saved.
func (d *Disk) Run(ctx context.Context) error {
	defer d.Close()
	for failures := 1; ; failures++ {
		last := ctx.Err() != nil
		before := d.Saving().Saved
		err := d.save(ctx)
		if err == nil {
			return nil
		}
		if last {
			return fmt.Errorf("save the last known good in %s: %w", d.folder, err)
		}
		if d.Saving().Saved != before {
			failures = 1
		}
		d.failed(err)
		wait.Sleep(ctx, d.tuning.backoff.After(failures, rand.Float64()))
	}
}

// failed reports why saving does not work. It is logged once for as long as it lasts.
func (d *Disk) failed(err error) {
	fresh := d.Saving().Err == nil
	d.report(func(s *Saving) {
		if s.Failures++; fresh {
			s.Since = time.Now()
		}
		s.Err = err
	})
	if fresh {
		d.log.Error("the last known good is not being saved: fix the disk or make room; serving goes on, and saving is tried again",
			"folder", string(d.folder), "err", err)
	}
}

// savedUpTo reports that everything up to a moment is on disk.
func (d *Disk) savedUpTo(at model.At) {
	failing := d.Saving().Err != nil
	d.report(func(s *Saving) { s.Saved, s.Pending, s.Err, s.Since = at, time.Time{}, nil, time.Time{} })
	if failing {
		d.log.Info("the last known good is being saved again", "folder", string(d.folder), "revision", at.Revision)
	}
}

// save follows the store from what is on disk until ctx ends or the disk
// fails. It returns nil if everything is saved.
func (d *Disk) save(ctx context.Context) error {
	// The watch outlives ctx, for what was committed before it ended.
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	batches := make(chan model.Batch)
	held := d.Saving().Saved // the session changes its own
	s := &session{Disk: d, ctx: following, held: held, compacted: make(chan compaction, 1)}
	var parts sync.WaitGroup
	defer parts.Wait()
	defer stop()
	parts.Go(func() {
		for b, err := range d.replica.WatchFrom(following, model.Filter{}, model.Start{Held: held}) {
			if err != nil {
				return
			}
			// Cases: the session takes the batch; it has ended.
			select {
			case batches <- b:
			case <-following.Done():
				return
			}
		}
	})
	s.parts = &parts
	defer s.close()
	return s.run(ctx.Done(), batches)
}
