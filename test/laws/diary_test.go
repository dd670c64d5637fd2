package laws_test

import (
	"context"
	"maps"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// diary is what was committed in a process, in order.
type diary struct {
	base    map[model.Ref]model.Record // what it began with
	at      uint64                     // the revision of that
	since   time.Time
	batches []model.Batch
	stop    context.CancelFunc
	over    chan struct{}
}

// lookAtRestored makes sure that what was restored is what was stored at some
// moment, and that this moment was late enough.
func (p *play) lookAtRestored(now *process) {
	if p.last == nil || now.Inside().Disk == nil {
		return
	}
	want, lost, known := p.last.until(now.Inside().Disk.Restored().At.Revision)
	if !lost.IsZero() && (p.killed.IsZero() || lost.Before(p.killed.Add(-time.Second))) {
		p.Fatalf("what was stored at %s is not there after a restart of %s", lost, p.killed)
	}
	if !known {
		return
	}
	for ref, r := range now.diary.base {
		was, ok := want[ref]
		if mark, is := was.Spec.(model.SourceMark); is && p.wants(ref.Source) { // it does not leave any more, which the start stores
			mark.Departure = model.Departure{}
			was.Spec = mark
		}
		if p.stays(ref.Source) && (!ok || !was.SameContent(r) || was.UID != r.UID) {
			p.Fatalf("restored is %+v, which was %+v", r, was)
		}
	}
	for ref := range want {
		if _, ok := now.diary.base[ref]; p.stays(ref.Source) && !ok {
			p.Fatalf("%s is not restored", ref)
		}
	}
}

func (d *diary) begin(s lawStore) {
	d.at, d.since = s.At().Revision, time.Now()
	d.base, d.over = map[model.Ref]model.Record{}, make(chan struct{})
	for r := range s.List(model.Filter{}) {
		d.base[r.Ref] = r
	}
	var ctx context.Context
	ctx, d.stop = context.WithCancel(context.Background())
	watch := s.WatchFrom(ctx, model.Filter{}, model.Start{Held: s.At()})
	go func() {
		defer close(d.over)
		for batch, err := range watch {
			if err != nil {
				return
			}
			d.batches = append(d.batches, batch)
		}
	}()
}

// end ends a diary, when all that was committed is in it.
func (d *diary) end() {
	synctest.Wait()
	d.stop()
	<-d.over
}

// until returns what was stored at a revision, and when the first commit after
// it was made; zero if there is none. It is not known of a moment that a diary
// has missed, because it lagged too far behind.
func (d *diary) until(revision uint64) (stored map[model.Ref]model.Record, lost time.Time, known bool) {
	if revision < d.at { // a start removes what is not configured, and that was not saved
		return nil, d.since, false
	}
	stored = maps.Clone(d.base)
	missed := false
	for _, b := range d.batches {
		for _, event := range b.Events {
			switch e := event.(type) {
			case model.Reset:
				missed = true
				clear(stored)
			case model.Upsert:
				if e.Record.Revision > revision {
					return stored, b.Committed, !missed
				}
				stored[e.Record.Ref] = e.Record
			case model.Delete:
				if e.Revision > revision {
					return stored, b.Committed, !missed
				}
				delete(stored, e.Record.Ref)
			case model.EndOfSnapshot:
				if e.Revision > revision {
					return nil, time.Time{}, false
				}
				missed = false
			}
		}
	}
	return stored, time.Time{}, true
}
