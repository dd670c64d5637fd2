package storetest

import (
	"errors"
	"fmt"

	"github.com/isthmus-mesh/isthmus/model"
)

type set map[model.Ref]model.Record

// view is the records that a reader of a watch holds. It folds in batches one after
// the other and reports which rule a batch breaks.
type view struct {
	held set
	read set // of the snapshot in progress

	primed          bool // between EndOfSnapshot and Reset
	revision, epoch uint64
	snapshots       int
	resets          int

	got   map[model.Ref]uint64 // highest revision by key
	ended map[model.UID]bool   // lives of deleted records
}

func newView() *view {
	return &view{read: set{}, got: map[model.Ref]uint64{}, ended: map[model.UID]bool{}}
}

// at returns the moment of the view.
func (v *view) at() model.At { return model.At{Epoch: v.epoch, Revision: v.revision} }

// apply folds one batch in.
func (v *view) apply(b model.Batch) error {
	if len(b.Events) == 0 {
		return errors.New("a batch without events")
	}
	if _, ok := b.Events[0].(model.Reset); ok {
		return v.reset(b)
	}
	if v.primed {
		return v.commit(b)
	}
	return v.snapshot(b)
}

func (v *view) reset(b model.Batch) error {
	switch {
	case len(b.Events) > 1:
		return errors.New("a reset that is not alone in its batch")
	case !v.primed:
		return errors.New("a reset inside a snapshot")
	}
	v.held, v.read, v.primed = nil, set{}, false
	v.resets++
	return nil
}

func (v *view) snapshot(b model.Batch) error {
	if !b.Observed.IsZero() || !b.Committed.IsZero() {
		return errors.New("a snapshot with the times of a commit")
	}
	for i, event := range b.Events {
		switch e := event.(type) {
		case model.Upsert:
			if err := v.include(e.Record); err != nil {
				return err
			}
		case model.EndOfSnapshot:
			if i != len(b.Events)-1 {
				return errors.New("rule 2: EndOfSnapshot is not the last of its batch")
			}
			return v.end(e)
		default:
			return fmt.Errorf("rule 2: a %T before EndOfSnapshot", event)
		}
	}
	return nil
}

// include adds one record of a snapshot. The record is compared with records delivered
// before a reset when the end of the snapshot gives its epoch.
func (v *view) include(r model.Record) error {
	if _, twice := v.read[r.Ref]; twice {
		return fmt.Errorf("rule 1: %s twice in one snapshot", r.Ref)
	}
	v.read[r.Ref] = r
	return nil
}

// compare checks a record of a snapshot against the records delivered before in the
// same epoch.
func (v *view) compare(r model.Record) error {
	if r.Revision < v.got[r.Ref] {
		return fmt.Errorf("rule 3: %s at revision %d after %d", r.Ref, r.Revision, v.got[r.Ref])
	}
	if v.ended[r.UID] {
		return fmt.Errorf("rule 6: %s with the uid of a life that ended", r.Ref)
	}
	v.got[r.Ref] = r.Revision
	return nil
}

func (v *view) end(e model.EndOfSnapshot) error {
	if e.Epoch == 0 {
		return errors.New("a snapshot without an epoch")
	}
	if e.Epoch != v.epoch { // Nothing compares across epochs.
		v.got, v.ended, v.revision, v.epoch = map[model.Ref]uint64{}, map[model.UID]bool{}, 0, e.Epoch
	}
	if e.Revision < v.revision {
		return fmt.Errorf("a snapshot of revision %d after %d", e.Revision, v.revision)
	}
	for ref, r := range v.read {
		if r.Revision == 0 || r.Revision > e.Revision {
			return fmt.Errorf("rule 1: %s of revision %d in a snapshot of %d", ref, r.Revision, e.Revision)
		}
		if err := v.compare(r); err != nil {
			return err
		}
	}
	v.held, v.read, v.primed = v.read, nil, true
	v.revision = e.Revision
	v.snapshots++
	return nil
}
