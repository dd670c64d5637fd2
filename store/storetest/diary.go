package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"

	"github.com/isthmus-mesh/isthmus/model"
)

// diary records the events of one watch.
type diary struct {
	moments []moment
	deltas  []uint64       // revisions delivered as commits
	absent  []model.Delete // upserts delivered, and then not found: each record must have been deleted later
	err     error
}

// keep reads a watch until the end of the storm.
func (o opening) keep(ctx context.Context, s Store, l *ledger, calm <-chan struct{}) (d diary) {
	// Cases: the storm has come far enough; it never will; the test ended.
	select {
	case <-l.reached(o.after):
	case <-calm:
	case <-ctx.Done():
	}
	v, last := newView(), markerOf(o.filter)
	for b, err := range s.Watch(ctx, o.filter) {
		if err == nil {
			err = d.add(s, v, b)
		}
		if err != nil {
			d.err = fmt.Errorf("after revision %d: %w", v.revision, err)
			return d
		}
		if _, ended := v.held[last]; ended {
			return d
		}
		if v.primed && o.lags {
			<-calm // a second read costs nothing: the channel is closed
		}
	}
	d.err = errors.New("the watch ended without an error")
	return d
}

// add folds a batch into v, looks up its records, and notes the held records.
func (d *diary) add(s Store, v *view, b model.Batch) error {
	following := v.primed
	if err := v.apply(b); err != nil {
		return err
	}
	if err := d.lookUp(s, b); err != nil {
		return err
	}
	if v.primed {
		d.moments = append(d.moments, moment{v.revision, maps.Clone(v.held)})
	}
	if v.primed && following {
		d.deltas = append(d.deltas, v.revision)
	}
	return nil
}

// lookUp reads the records that were just delivered: rule 5.
func (d *diary) lookUp(s Store, b model.Batch) error {
	for _, event := range b.Events {
		switch e := event.(type) {
		case model.Upsert:
			got, ok := s.Get(e.Record.Ref)
			if !ok {
				d.absent = append(d.absent, model.Delete{Record: e.Record, Revision: e.Record.Revision})
			} else if got.Revision < e.Record.Revision {
				return fmt.Errorf("rule 5: notified of %s at revision %d, then read %d", got.Ref, e.Record.Revision, got.Revision)
			}
		case model.Delete:
			if got, ok := s.Get(e.Record.Ref); ok && got.Revision <= e.Revision {
				return fmt.Errorf("rule 5: notified that %s went at revision %d, then read %d", got.Ref, e.Revision, got.Revision)
			}
		}
	}
	return nil
}

// collectLists lists everything now and then, slowly enough that commits come between
// the records of a list.
func collectLists(ctx context.Context, s Store, l *ledger, calm <-chan struct{}) (out []set) {
	for n := range 20 {
		// Cases: the next commits were made; there will be none; the test ended.
		select {
		case <-l.reached(3 * n):
		case <-calm:
		case <-ctx.Done():
		}
		list := set{}
		for r := range s.List(model.Filter{}) {
			list[r.Ref] = r
			runtime.Gosched()
		}
		out = append(out, list)
	}
	return out
}
