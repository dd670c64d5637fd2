package storetest

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/store"
)

// supply feeds a replica and knows by itself what it must hold.
type supply struct {
	replica Replica
	feed    Feed
	want    set
	lives   uint64
}

func newSupply(r Replica, f Feed) *supply { return &supply{replica: r, feed: f, want: set{}} }

// stored returns a record as it is stored by a commit.
func (s *supply) stored(r model.Record, revision uint64) model.Record {
	before, ok := s.want[r.Ref]
	if r.UID = before.UID; !ok {
		s.lives++
		binary.BigEndian.PutUint64(r.UID[:], s.lives)
	}
	r.Revision, r.Generation = revision, before.Generation+1
	return r
}

func (s *supply) put(at model.At, records ...model.Record) store.Decided {
	d := store.Decided{At: at}
	for _, r := range records {
		d.Events = append(d.Events, model.Upsert{Record: s.stored(r, at.Revision)})
	}
	return d
}

// drop names what goes and says nothing else of it.
func (s *supply) drop(at model.At, refs ...model.Ref) store.Decided {
	d := store.Decided{At: at}
	for _, ref := range refs {
		d.Events = append(d.Events, model.Delete{Record: model.Record{Ref: ref}, Revision: at.Revision})
	}
	return d
}

// apply feeds a commit that must be taken.
func (s *supply) apply(t failer, d store.Decided) {
	t.Helper()
	if err := s.feed.Apply(d); err != nil {
		t.Fatalf("revision %d: %v", d.At.Revision, err)
	}
	for _, event := range d.Events {
		switch e := event.(type) {
		case model.Upsert:
			s.want[e.Record.Ref] = e.Record
		case model.Delete:
			delete(s.want, e.Record.Ref)
		}
	}
}

// reset feeds a whole state, whose records are new lives.
func (s *supply) reset(t failer, at model.At, records ...model.Record) {
	t.Helper()
	next := set{}
	s.want = set{}
	for _, r := range records {
		next[r.Ref] = s.stored(r, max(at.Revision, 1))
	}
	s.want = next
	s.replace(t, at)
}

// replace feeds what the replica must hold as a whole state.
func (s *supply) replace(t failer, at model.At) {
	t.Helper()
	if err := s.feed.Reset(at, "fed anew", maps.Values(s.want)); err != nil {
		t.Fatalf("state of %+v: %v", at, err)
	}
}

// mustReject feeds what comes out of order.
func (s *supply) mustReject(t failer, d store.Decided) {
	t.Helper()
	now := s.replica.At()
	var order *store.OrderError
	if err := s.feed.Apply(d); !errors.As(err, &order) || order.Fed != d.At || order.Now != now {
		t.Fatalf("fed %+v at %+v: error %v, want one that names both", d.At, now, err)
	}
	s.mustBeUnchanged(t, now)
}

func (s *supply) mustRejectState(t failer, at model.At) {
	t.Helper()
	now := s.replica.At()
	var order *store.OrderError
	if err := s.feed.Reset(at, "no reason", slices.Values([]model.Record(nil))); !errors.As(err, &order) {
		t.Fatalf("fed a state of %+v at %+v: error %v", at, now, err)
	}
	s.mustBeUnchanged(t, now)
}

func (s *supply) mustBeUnchanged(t failer, at model.At) {
	t.Helper()
	if now := s.replica.At(); now != at {
		t.Fatalf("what was rejected moved the replica from %+v to %+v", at, now)
	}
	mustEqual(t, "after what was rejected", listed(t, s.replica, model.Filter{}), s.want)
}

// endsUnseen opens a watch that must wait, and ends it.
func endsUnseen(t *testing.T, r Replica, start model.Start, shown func()) {
	t.Helper()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := lastError(t, r.WatchFrom(ended, model.Filter{}, start), shown); !errors.Is(err, context.Canceled) {
		t.Errorf("a watch from %+v that has to wait ended with error %v", start, err)
	}
}
