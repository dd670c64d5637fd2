package supervise

import (
	"context"
	"iter"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/baseline"
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/source/index"
	"github.com/isthmus-mesh/isthmus/source/reading"
)

// list makes the store match a listing, apart from held records. The holds, the mark of
// a complete listing and the judgements of baselines are part of the same commit. A
// rejected commit may mean that another writer changed these records, so everything is
// read and compared again.
func (m *mirror) list(ctx context.Context, r *reading.Reading, rejected []model.Rejection) (_ hold.Decision, err error) {
	m.bound(r)
	for range commitTries {
		if ctx.Err() != nil { // a reading taken while stopping may be cut short
			return hold.Decision{}, context.Cause(ctx)
		}
		obeys := m.order.Load().holds(time.Now())
		d := m.compare(r)
		if obeys {
			d.Missing = nil // as if the listing had these records
		}
		p := m.judge(r, d)
		writes, undo := m.stage(p)
		baselines := m.baselines
		if r.Whole {
			if !obeys {
				standing, _ := reading.Standing(r, rejected)
				baselines = m.judged(overlay(m.store, p.Writes), baseline.Facts{Listing: true, Unread: reading.Unread(standing), Edited: m.cfg.Edited, Now: time.Now()})
			}
			marks := m.markWrites(baselines, true)
			m.ledger.Index.Commit(marks)
			writes = append(writes, marks...)
		}
		if err = m.commit(ctx, r, writes); err == nil {
			m.ledger.Committed(r, p, time.Now())
			m.report(p.Writes)
			m.decided(baselines, r.Whole)
			m.obeyed(r.Whole, obeys)
			return p, nil
		}
		undo()
	}
	return hold.Decision{}, err
}

// compare compares a listing with the stored records. A complete one passes all of them,
// and so rebuilds the index.
func (m *mirror) compare(r *reading.Reading) reading.Difference {
	if !r.Whole {
		return r.Compare(m.concerned(r, m.ledger.Index), m.ledger.Held, stamp())
	}
	d := r.Compare(m.ledger.Relist(m.all()), m.ledger.Held, stamp())
	if d.Held != m.ledger.Holds.Stock.Stored { // another writer changed the source's records
		m.ledger.Restore(m.all())
		d = r.Compare(m.ledger.Relist(m.all()), m.ledger.Held, stamp())
	}
	m.ledger.Flag()
	return d
}

// judge decides about the records that a listing lacks.
func (m *mirror) judge(r *reading.Reading, d reading.Difference) hold.Decision {
	_, suspected := m.baselines.Kept()
	return m.ledger.Judge(hold.Listing{
		Reading: r, Difference: d, First: !m.listed, Suspected: suspected,
		Stored: m.all(), Revision: m.store.Revision(), Now: time.Now(),
	})
}

// judged returns the baselines after a judgement, with the records of all sources.
func (m *mirror) judged(list func(model.Filter) iter.Seq[model.Record], in baseline.Facts) baseline.Set {
	has := index.Stock{Endpoints: m.ledger.Index.Endpoints(), Services: m.ledger.Index.Services()}
	return m.baselines.Judge(m.source, list, has, m.cfg.Hold, in)
}

// markWrites returns the write that stores judgements of baselines in the source's
// mark. Only a listing creates the mark, which proves that there has been one.
func (m *mirror) markWrites(baselines baseline.Set, listed bool) []model.Write {
	ref := model.Ref{Kind: model.KindSource, Key: model.Key{Source: m.source, Name: m.source}}
	have, stored := m.find(ref)
	mark, _ := have.Spec.(model.SourceMark) // others write its departure
	mark.Judgements = model.JudgementsOf(baselines.Judgements()...)
	if listed {
		mark.StaleSince = time.Time{}
	}
	want := model.Record{Ref: ref, Spec: mark}
	if !stored && !listed || stored && want.SameContent(have) {
		return nil
	}
	want.UID, want.Revision, want.Generation = have.UID, have.Revision, have.Generation
	return []model.Write{{Record: want}}
}
