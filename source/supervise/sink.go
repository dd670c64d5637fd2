package supervise

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/source/reading"
)

var errNotListed = errors.New("a complete listing of the registry must come first: this is a defect of the source, please report it")

// sink takes the readings of one run of a source. It belongs to the goroutine of that
// run.
type sink struct {
	src     source.Source
	mirror  *mirror
	status  *status
	limits  reading.Limits
	live    time.Time    // when this run's first complete listing was stored
	orphans *time.Ticker // runs while the owner of some record is unknown, else nil
}

var _ source.Sink = (*sink)(nil)

// Relist implements [source.Sink].
func (k *sink) Relist() <-chan time.Time {
	if k.orphans != nil { // its interval is shorter
		return k.orphans.C
	}
	return k.mirror.relist.C
}

// Replace implements [source.Sink].
func (k *sink) Replace(ctx context.Context, listing model.Listing) error {
	if listing.Places != nil && k.live.IsZero() {
		return errNotListed
	}
	r := reading.OfListing(k.limits, listing)
	done, err := k.mirror.lock(ctx)
	if err != nil {
		return err
	}
	defer done()
	p, err := k.mirror.list(ctx, r, k.status.get().Rejected)
	if err != nil {
		return k.failed(ctx, err)
	}
	now := time.Now()
	if r.Whole {
		if k.live.IsZero() {
			k.live = now
		}
		k.stopAsking()
	}
	k.report(r, p, stored{ignored: listing.Ignored, notices: listing.Notices, at: now})
	return nil
}

// Change implements [source.Sink].
func (k *sink) Change(ctx context.Context, change model.Change) error {
	if k.live.IsZero() {
		return errNotListed
	}
	r := reading.OfChange(k.limits, change)
	done, err := k.mirror.lock(ctx)
	if err != nil {
		return err
	}
	defer done()
	p, ask, err := k.mirror.change(ctx, r, k.status.get().Rejected)
	if err != nil {
		return k.failed(ctx, err)
	}
	if ask && k.orphans == nil {
		k.orphans = time.NewTicker(askWait)
	}
	k.report(r, p, stored{at: time.Now()})
	return nil
}

// stopAsking ends the requests for listings that may reveal an unknown owner.
func (k *sink) stopAsking() {
	if k.orphans != nil {
		k.orphans.Stop()
		k.orphans = nil
	}
}

// failed reports that a reading is not stored.
func (k *sink) failed(ctx context.Context, err error) error {
	err = fmt.Errorf("store the listing: %w", err)
	if ctx.Err() == nil {
		k.status.lost(err.Error())
	}
	return err
}

// report reports a stored reading to the status: a status never claims a record that is
// not stored.
func (k *sink) report(r *reading.Reading, p hold.Decision, s stored) {
	k.mirror.asked(r.Whole)
	// Only the writer of the source's records changes the parts of the status used
	// here. So no change is missed between this look and the report.
	before := k.status.get()
	s.state, s.reason = k.mirror.state(), before.Reason
	if s.state != before.State || p.Touches() {
		s.reason = k.mirror.reason()
	}
	s.whole, s.began, s.counts = r.Whole, len(p.Began) > 0, k.mirror.counts()
	s.rejected, s.fresh = reading.Standing(r, before.Rejected)
	k.status.mirrored(s)
	reporter, reports := k.src.(source.RejectionReporter)
	if reports && (len(s.fresh) > 0 || len(s.rejected) != len(before.Rejected)) {
		reporter.ReportRejections(s.rejected, s.fresh, k.mirror.has)
	}
}
