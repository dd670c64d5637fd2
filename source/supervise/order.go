package supervise

import (
	"context"
	"fmt"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// LongestOrder bounds the time for which an operator can hold a source.
const LongestOrder = 24 * time.Hour

// order is an operator's order to remove nothing that listings lack, until a time. It ends by
// itself. It is immutable.
type order struct{ since, until time.Time }

// holds reports whether the order is in force.
func (o *order) holds(now time.Time) bool { return o != nil && now.Before(o.until) }

// left returns the time until the order ends; 0 without one.
func (o *order) left(now time.Time) time.Duration {
	if o == nil {
		return 0
	}
	return max(o.until.Sub(now), 0)
}

// shown returns a status with the order. A failure to read the registry stays visible, and so
// does a drop that is held.
func (o *order) shown(st source.Status, now time.Time) source.Status {
	if !o.holds(now) {
		return st
	}
	st.HeldUntil = o.until
	text := fmt.Sprintf("held by an operator until %s: nothing that its listings lack is removed until then", o.until.Format(time.RFC3339))
	switch st.State {
	case source.StateLive:
		st.State, st.Since, st.Reason = source.StateHeld, o.since, text
	case source.StateHeld, source.StateStale, source.StateListing:
		st.Reason = text + "; " + st.Reason
	}
	return st
}

// orderOf returns the order in the mark of a source, for a process that begins; nil if there
// is none in force. Another clock may have stored it, so its time is bounded.
func orderOf(stored Lister, name string, now time.Time) *order {
	mark, _ := markOf(stored, name).Spec.(model.SourceMark)
	o := &order{since: now, until: mark.HoldUntil}
	if latest := now.Add(LongestOrder); o.until.After(latest) {
		o.until = latest
	}
	if !o.holds(now) {
		return nil
	}
	return o
}

// storeOrder stores the end of an order in the mark of a source, so that another process
// continues it; the zero time ends it. A source that was never listed has no mark, and nothing
// to keep.
func storeOrder(ctx context.Context, store Store, name string, until time.Time) error {
	_, err := editMark(ctx, store, name, func(mark model.SourceMark) model.SourceMark {
		mark.HoldUntil = until
		return mark
	})
	if err != nil {
		return fmt.Errorf("store the hold of source %s: %w", name, err)
	}
	return nil
}

// editMark changes the mark of a source. Marked is false if the source has none.
func editMark(ctx context.Context, store Store, name string, edit func(model.SourceMark) model.SourceMark) (marked bool, err error) {
	for range commitTries {
		rec := markOf(store, name)
		mark, marked := rec.Spec.(model.SourceMark)
		if !marked {
			return false, nil
		}
		next := edit(mark)
		if next.EqualSpec(mark) {
			return true, nil
		}
		rec.Spec = next
		if _, err = store.Commit(ctx, model.Commit{Writes: []model.Write{{Record: rec}}}); err == nil {
			return true, nil
		}
	}
	return false, err
}
