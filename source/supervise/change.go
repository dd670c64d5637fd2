package supervise

import (
	"context"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/source/reading"
)

// change makes the store match a change. A change lacks no record, so no drop is judged:
// the records that it names are compared with the stored ones, and the difference is
// committed. A deletion that the registry reported is no drop. The result ask says
// whether a listing could resolve omitted records, given the present rejections.
//
// A rejected commit may mean that another writer changed these records, so they are read
// and compared again.
func (m *mirror) change(ctx context.Context, read *reading.Reading, rejected []model.Rejection) (_ hold.Decision, ask bool, err error) {
	m.bound(read)
	for range commitTries {
		if ctx.Err() != nil { // a reading taken while stopping may be cut short
			return hold.Decision{}, false, context.Cause(ctx)
		}
		r, ask := reading.WithoutOrphans(read, m.ledger.Index, m.find, rejected)
		d := r.Compare(m.concerned(r, m.ledger.Index), m.ledger.Held, stamp())
		p := m.ledger.Report(r.Records, d)
		writes, undo := m.stage(p)
		if err = m.commit(ctx, r, writes); err == nil {
			m.ledger.Reported(r, p)
			m.report(p.Writes)
			return p, ask, nil
		}
		undo()
	}
	return hold.Decision{}, false, err
}
