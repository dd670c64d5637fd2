package supervise

import (
	"context"
	"fmt"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// HeldStatus is the status of a source that has left the configuration, while its
// records are served.
type HeldStatus struct {
	State  source.State
	Reason string
	Since  time.Time
	Held   int // records
	// Release deletes the records by order of an operator. It returns their number
	// once they are deleted.
	Release func(ctx context.Context) (int, error)
}

// shown returns a status overridden by a departure.
func (d *HeldStatus) shown(st source.Status) source.Status {
	if d != nil {
		st.State, st.Reason, st.Since, st.Held = d.State, d.Reason, d.Since, d.Held
		st.HeldEndpoints = min(d.Held, st.Endpoints)
	}
	return st
}

// StoredDeparture returns the departure of a source that is stored in its mark; zero
// if it does not leave the configuration.
func StoredDeparture(stored Lister, name string) model.Departure {
	mark, _ := markOf(stored, name).Spec.(model.SourceMark)
	return mark.Departure
}

// StoreDeparture stores the departure of a source in its mark, so that another
// process can continue it. It returns false if the source was never listed, and so
// has no mark.
func StoreDeparture(ctx context.Context, store Store, name string, d model.Departure) (stored bool, err error) {
	stored, err = editMark(ctx, store, name, func(mark model.SourceMark) model.SourceMark {
		mark.Departure = d
		return mark
	})
	if err != nil {
		return false, fmt.Errorf("store the removal of source %s from the configuration: %w", name, err)
	}
	return stored || d.Equal(model.Departure{}), nil
}

// markOf returns the mark of a source; its specification is nil if there is none.
func markOf(stored Lister, name string) (mark model.Record) {
	for rec := range stored.List(model.Filter{Kind: model.KindSource, Source: name}) {
		mark = rec
	}
	return mark
}
