package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/wait"
	"github.com/isthmus-mesh/isthmus/model"
)

var errNotDrained = errors.New("the disk was too slow: the last commits were not saved before the process had to stop; " +
	"the next start reads them from the registries again")

// Run saves every commit until ctx ends, then the commits made up to that moment, and
// unlocks the folder. Writers should have ended before. It returns an error only if
// the last commits could not be saved.
//
// A disk that hangs keeps the folder locked until it answers or the process ends,
// because it may still write.
func (d *Disk) Run(ctx context.Context) error {
	saving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan error, 1)
	go func() {
		err := d.work(ctx, saving)
		d.Close()
		ended <- err
	}()
	return d.attend(ctx, ended)
}

// attend reports a slow disk, and waits for the end of saving.
func (d *Disk) attend(ctx context.Context, ended <-chan error) error {
	slow := slowness{limit: d.tuning.slow, log: d.log, folder: d.folder}
	look := time.NewTicker(d.tuning.slow / 4)
	defer look.Stop()
	var limit <-chan time.Time
	stop := ctx.Done()
	for {
		// Cases: saving has ended; the lag is due to be checked; Run has to end; it takes
		// too long to end.
		select {
		case err := <-ended:
			return err
		case now := <-look.C:
			slow.look(d.Saving(), now)
		case <-stop:
			stop = nil
			timer := time.NewTimer(d.tuning.drain)
			defer timer.Stop() //nolint:gocritic // it comes here once
			limit = timer.C
		case <-limit:
			return d.notSaved(errNotDrained)
		}
	}
}

// slowness logs when the disk falls behind, and when it has caught up.
type slowness struct {
	limit  time.Duration
	log    *slog.Logger
	folder folder
	since  time.Time
}

func (s *slowness) look(p Saving, now time.Time) {
	lag := p.Lag(now)
	switch {
	case p.Err != nil: // logged where it occurs
	case s.since.IsZero() && lag > s.limit:
		s.since = p.Pending
		s.log.Warn("the disk is slow or hangs: the last known good is not being saved; serving goes on. Look at the disk, and do not restart before it answers",
			"folder", string(s.folder), "lag", lag.Round(time.Second).String(), "unwritten", p.WriteLag(now).Round(time.Second).String())
	case !s.since.IsZero() && lag < s.limit:
		s.log.Info("the disk keeps up again", "folder", string(s.folder), "after", now.Sub(s.since).Round(time.Second).String())
		s.since = time.Time{}
	}
}

// work saves until stopping ends, and retries after failures. Work still in progress
// when ctx ends is aborted.
func (d *Disk) work(stopping, ctx context.Context) error {
	noting, end := context.WithCancel(ctx)
	var parts sync.WaitGroup
	defer parts.Wait()
	defer end()
	since := d.from
	if since == (model.At{}) {
		since = d.replica.At()
		d.progress.startsOver(since, time.Now())
	}
	parts.Go(func() { d.note(noting, since) })
	for failures := 1; ; failures++ {
		last := stopping.Err() != nil
		before := d.Saving().Saved
		err := d.own()
		if err == nil {
			err = d.save(ctx, stopping.Done())
		}
		if err == nil {
			return nil
		}
		if last {
			return d.notSaved(err)
		}
		if d.Saving().Saved != before {
			failures = 1
		}
		if lost := d.intact(nil); errors.Is(lost, errNotOurs) {
			if _, inUse := errors.AsType[*InUseError](err); !inUse {
				err = lost
			}
			d.progress.lost()
			d.progress.startsOver(d.replica.At(), time.Now())
		}
		d.failed(err)
		wait.Sleep(stopping, d.tuning.backoff.After(failures, rand.Float64()))
	}
}

// own makes sure that the folder belongs to this process. A removed or replaced folder
// is created again, and everything is saved anew.
func (d *Disk) own() error {
	lost := d.intact(nil)
	if !errors.Is(lost, errNotOurs) {
		return lost
	}
	d.from = model.At{}
	d.progress.lost()
	return d.remake(lost)
}

func (d *Disk) notSaved(err error) error {
	return fmt.Errorf("save the last known good in %s: %w", d.folder, err)
}

// failed reports why saving fails. One log line reports the whole failure, and another
// one that a second process has locked the folder.
func (d *Disk) failed(err error) {
	next := remedy(err)
	before := d.progress.failed(err, next, time.Now())
	_, wasInUse := errors.AsType[*InUseError](before)
	_, inUse := errors.AsType[*InUseError](err)
	if before != nil && wasInUse == inUse {
		return
	}
	d.log.Error("the last known good cannot be saved; serving continues, and saving is retried", "next", next, "folder", string(d.folder), "err", err)
}

// remedy returns the step that helps when saving fails.
func remedy(err error) string {
	_, inUse := errors.AsType[*InUseError](err)
	switch {
	case inUse:
		return "stop the other process, or give each Isthmus a folder of its own"
	case errors.Is(err, errNotOurs) && errors.Is(err, syscall.ENOTDIR):
		return "remove the file that is in place of the folder, which is made again"
	case errors.Is(err, errNotOurs):
		return "its folder is gone, and is made again"
	default:
		return "fix the disk or make room"
	}
}

// save follows the store from the saved moment until stop or ctx ends, or the disk
// fails. It returns nil if everything is saved.
func (d *Disk) save(ctx context.Context, stop <-chan struct{}) error {
	for {
		if d.from == (model.At{}) {
			if err := d.startOver(ctx); err != nil {
				return err
			}
		}
		if err := d.follow(ctx, stop); !errors.Is(err, errReset) {
			return err
		}
		d.from = model.At{}
	}
}

// startOver saves everything in a new snapshot.
func (d *Disk) startOver(ctx context.Context) error {
	number, err := d.next()
	if err != nil {
		return err
	}
	c := compact(ctx, &d.archive, d.replica, number)
	if c.err != nil {
		return c.err
	}
	if err := d.superseded(c); err != nil {
		return err
	}
	d.from = c.at
	d.progress.savedUpTo(c.at, d.log, d.folder)
	return nil
}

// note notes each commit when it is made, also while the disk hangs.
func (d *Disk) note(ctx context.Context, since model.At) {
	snapshot := false
	for b, err := range d.replica.WatchFrom(ctx, model.Filter{}, model.Start{Held: since}) {
		if err != nil {
			return
		}
		switch last := b.Events[len(b.Events)-1].(type) {
		case model.Reset:
			snapshot = true
		case model.EndOfSnapshot:
			snapshot = false
			d.progress.startsOver(model.At{Epoch: last.Epoch, Revision: last.Revision}, time.Now())
		default:
			if !snapshot {
				d.progress.committed(revisionOf(b), b.Committed)
			}
		}
	}
}

// errReset reports that the saver lagged too far behind: a snapshot has to come before
// it continues.
var errReset = errors.New("the disk lagged behind the store")

// follow saves each commit after the saved moment.
func (d *Disk) follow(ctx context.Context, stop <-chan struct{}) error {
	ctx, end := context.WithCancel(ctx)
	var parts sync.WaitGroup
	batches := make(chan model.Batch)
	s := newSession(ctx, d, &parts)
	defer func() {
		end()
		parts.Wait()
		s.close()
		d.from = d.Saving().Saved
	}()
	parts.Go(func() { d.watch(ctx, batches) })
	return s.run(stop, batches)
}

// watch passes on each commit.
func (d *Disk) watch(ctx context.Context, batches chan<- model.Batch) {
	for b, err := range d.replica.WatchFrom(ctx, model.Filter{}, model.Start{Held: d.from}) {
		if err != nil {
			return
		}
		// Cases: the session takes the batch; the session has ended.
		select {
		case batches <- b:
		case <-ctx.Done():
			return
		}
	}
}

// revisionOf returns the revision of a commit; zero if the batch is none.
func revisionOf(b model.Batch) uint64 {
	switch e := b.Events[0].(type) {
	case model.Upsert:
		return e.Record.Revision
	case model.Delete:
		return e.Revision
	}
	return 0
}
