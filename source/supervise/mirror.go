package supervise

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/events"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/baseline"
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/source/index"
	"github.com/isthmus-mesh/isthmus/source/reading"
)

// commitTries bounds how often one reading is compared and committed afresh.
const commitTries = 4

// askWait is the delay, and the interval, of requests for a listing that only a
// listing can answer: after a record with an unknown owner, and after a release.
const askWait = time.Second

// mirror keeps the stored records of one source as its registry has them. All methods but
// lock belong to the writer of these records in the store: the present run, or an order
// from elsewhere.
type mirror struct {
	records
	store Store
	cfg   Config

	// writing is held by the writer. It is a channel so that a caller can stop waiting
	// when its context ends.
	writing chan struct{}

	ledger    *hold.Ledger
	changes   source.Changes             // since the start
	order     atomic.Pointer[order]      // of an operator; nil without one
	lacked    bool                       // the last complete listing came under an order, which keeps what it lacked
	baselines baseline.Set               // of other systems
	listed    bool                       // completely, since the start
	unsure    bool                       // the store may differ from the registry, until it lists
	full      map[string]index.Footprint // of namespaces with objects rejected for want of room, as it was then

	relist *time.Ticker  // asks the source to list again
	every  time.Duration // interval of relist; zero if it is stopped
}

func newMirror(name string, store Store, cfg Config) *mirror {
	m := &mirror{
		records: records{store, name}, store: store, cfg: cfg, writing: make(chan struct{}, 1),
		ledger: hold.NewLedger(cfg.Hold, cfg.Edited), relist: time.NewTicker(cfg.Hold.Interval()),
	}
	m.relist.Stop()
	return m
}

// lock makes the caller the writer of the source's records, until done is called. It
// fails if ctx ends first.
func (m *mirror) lock(ctx context.Context) (done func(), err error) {
	select {
	case m.writing <- struct{}{}:
		return func() { <-m.writing }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// restore reads the stored records before the source is run. Records that the present
// configuration excludes are removed. Marks of an older Isthmus on single held records
// are replaced by one record for all of them.
func (m *mirror) restore(ctx context.Context) (err error) {
	if err := m.confine(ctx); err != nil {
		return err
	}
	if m.order.Load() == nil {
		m.order.Store(orderOf(m.store, m.source, time.Now()))
	}
	for range commitTries {
		writes := m.ledger.Restore(m.all())
		if len(writes) > 0 {
			writes = append(writes, m.ledger.Holds.Writes(m.source, m.ledger.Index, nil, m.holds())...)
			if _, err = m.store.Commit(ctx, model.Commit{Writes: writes}); err != nil {
				continue
			}
		}
		return nil
	}
	return fmt.Errorf("store held records: %w", err)
}

// confine removes stored records that the source's present confinement excludes,
// before the source is run. The order comes from an operator and not from a registry.
// So it waits for no listing, and no record is held.
func (m *mirror) confine(ctx context.Context) (err error) {
	for range commitTries {
		writes, gone := outside(m.all(), m.cfg)
		if len(writes) == 0 {
			return nil
		}
		if _, err = m.store.Commit(ctx, model.Commit{Writes: writes}); err == nil {
			if gone > 0 {
				m.cfg.Log.Info("records outside of the allowed namespaces, hosts or addresses of the source are removed", "source", m.source, "count", gone)
			}
			return nil
		}
	}
	return fmt.Errorf("remove records outside of the allowed namespaces, hosts or addresses: %w", err)
}

// bound rejects the services of a reading that have no room in their namespace.
func (m *mirror) bound(r *reading.Reading) {
	full := reading.Bound(r, m.ledger.Index, m.ledger.Held)
	if r.Whole || len(m.full) == 0 {
		m.full = full
		return
	}
	maps.Copy(m.full, full)
}

// hasRoom reports whether a full namespace has become smaller since. A listing then has
// the objects that may fit now.
func (m *mirror) hasRoom() bool {
	for namespace, was := range m.full {
		if !was.Within(m.ledger.Index.Namespace(namespace)) {
			return true
		}
	}
	return false
}

// stage applies a decision in memory, and returns the writes of its commit: the
// decision's own, and those of the holds. Unless the commit succeeds, undo reverts it.
func (m *mirror) stage(p hold.Decision) (writes []model.Write, undo func()) {
	dropped := m.ledger.Apply(p, time.Now())
	writes = p.Writes
	writes = append(writes, m.ledger.Holds.Writes(m.source, m.ledger.Index, p.Writes, m.holds())...)
	return writes, func() { m.ledger.Undo(p, dropped, m.all()) }
}

// commit stores the writes of a reading. Without writes there is no commit.
func (m *mirror) commit(ctx context.Context, r *reading.Reading, writes []model.Write) error {
	if len(writes) == 0 {
		return nil
	}
	_, err := m.store.Commit(ctx, model.Commit{Writes: writes, Observed: r.Observed})
	return err
}

// report reports and counts committed writes.
func (m *mirror) report(writes []model.Write) {
	n := report(m.cfg, m.source, writes)
	m.changes.Added += n.Added
	m.changes.Changed += n.Changed
	m.changes.Removed += n.Removed
}

// obey starts an operator's order, or ends it with nil. The registry is asked to list when it
// ends.
func (m *mirror) obey(o *order) {
	m.unsure = m.unsure || o == nil && m.order.Load() != nil
	m.order.Store(o)
	m.asked(false)
}

// decided keeps the baselines as they were judged by a stored reading or order.
func (m *mirror) decided(baselines baseline.Set, listed bool) {
	m.baselines, m.listed = baselines, m.listed || listed
}

// inherit takes over the baselines and the marks of an earlier mirror of the source.
func (m *mirror) inherit(before *mirror) {
	m.baselines, m.listed, m.changes = before.baselines, before.listed, before.changes
	m.ledger.Inherit(before.ledger)
	m.order.Store(before.order.Load())
	m.baselines.Confine(m.cfg.Only)
}

// release deletes the held records. Kept counts the endpoints that baselines keep.
func (m *mirror) release(ctx context.Context, kept int) (released int, err error) {
	defer func() { m.asked(false) }()
	baselines := m.baselines.Released()
	for range commitTries {
		m.ledger.Restore(m.all())
		writes := m.ledger.Holds.Deletions(m.all())
		if released = max(released, len(writes)); released+kept > 0 {
			m.unsure = true
		}
		for rec := range m.holds() {
			writes = append(writes, reading.Deletion(rec))
		}
		writes = append(writes, m.markWrites(baselines, false)...)
		if len(writes) > 0 {
			if _, err = m.store.Commit(ctx, model.Commit{Writes: writes}); err != nil {
				continue
			}
		}
		m.decided(baselines, false)
		m.report(writes)
		if released > 0 {
			m.ledger.Forget()
		}
		m.ledger.Restore(m.all())
		return released, nil
	}
	return 0, fmt.Errorf("release held records of source %s: %w", m.source, err)
}

// remark judges pending baselines by the last listing, and stores the judgements.
func (m *mirror) remark(ctx context.Context, rejected []model.Rejection) (err error) {
	for range commitTries {
		baselines := m.judged(m.store.List, baseline.Facts{Unread: reading.Unread(rejected), Edited: m.cfg.Edited, Now: time.Now()})
		writes := m.markWrites(baselines, false)
		if len(writes) > 0 {
			if _, err = m.store.Commit(ctx, model.Commit{Writes: writes}); err != nil {
				continue
			}
		}
		m.decided(baselines, false)
		m.asked(false)
		return nil
	}
	return fmt.Errorf("store the decision about source %s: %w", m.source, err)
}

// obeyed notes whether a stored listing came under an order.
func (m *mirror) obeyed(whole, obeys bool) {
	if whole || obeys {
		m.lacked = obeys
	}
	if whole && !obeys && m.order.Swap(nil) != nil {
		m.cfg.Events.Add(events.Event{Kind: events.Hold, Source: m.source, Text: "the operator's hold has ended"})
	}
}

// has reports whether an object of the source is stored.
func (m *mirror) has(object model.Ref) bool {
	object.Source = m.source
	_, stored := m.ledger.Index.Find(object)
	return stored
}

// asked requests listings, counted from the last complete one, while a record is held
// or a rejected object may fit now. The first one comes soon if only a listing can
// show the registry's state.
func (m *mirror) asked(listed bool) {
	m.unsure = m.unsure && !listed
	every := time.Duration(0)
	switch interval := m.cfg.Hold.Interval(); {
	case m.unsure:
		every = min(askWait, interval)
	case !m.ledger.Holds.Empty(), m.baselines.Holds(), m.hasRoom():
		every = interval
	case m.lacked:
		every = max(interval, m.order.Load().left(time.Now()))
	}
	switch {
	case every == 0:
		m.relist.Stop()
	case listed || every != m.every:
		m.relist.Reset(every)
	}
	m.every = every
}

// counts are the numbers of a source's status.
type counts struct {
	services, endpoints int
	carried             map[model.Kind]int
	held, heldEndpoints int
	changes             source.Changes
	marked              bool // it is known to have listed completely
}

func (m *mirror) counts() counts {
	x, held := m.ledger.Index, m.ledger.Holds.Stock
	return counts{x.Services(), x.Endpoints(), x.Carried(), held.Stored, held.Endpoints, m.changes, x.Marked()}
}

// state returns the state after a stored reading.
func (m *mirror) state() source.State {
	if m.ledger.Holds.Empty() {
		return source.StateLive
	}
	return source.StateHeld
}

// reason returns why the source is not live.
func (m *mirror) reason() string {
	if m.ledger.Holds.Empty() {
		return ""
	}
	return hold.Text(m.ledger.Holds, m.source, m.cfg.Hold)
}

// stamp returns the time as it is stored: without a time zone or a monotonic clock.
func stamp() time.Time { return time.Now().UTC().Round(0) }
