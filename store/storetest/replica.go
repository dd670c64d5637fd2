package storetest

import (
	"iter"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/store"
)

// Replica is what there is to read of a replica.
type Replica interface {
	Readable
	At() model.At
}

// Feed is what brings a replica everything. [store.Feed] documents each method.
type Feed interface {
	Apply(d store.Decided) error
	Reset(at model.At, why string, all iter.Seq[model.Record]) error
}

// RunReplica checks the replica that open returns: a new one each time, that
// was never fed and keeps [History] events.
func RunReplica(t *testing.T, open func(t *testing.T) (Replica, Feed)) {
	t.Helper()
	for _, rule := range []struct {
		name  string
		check func(t *testing.T, s *supply)
	}{
		{"nothing is shown before the first state", firstState},
		{"revisions and epochs are those given", givenMoments},
		{"a delete tells the whole last record", knownByReference},
		{"a feed that repeats itself changes nothing", repeatedFeed},
		{"what goes backwards is rejected", backwardFeed},
		{"what no store can have made is rejected", brokenFeed},
		{"a feed may be replaced in another epoch", replacedFeed},
		{"a feed that lost its place resets in its epoch", lostPlace},
		{"a state that cannot be is rejected", brokenState},
		{"a watch waits over gaps to be not older", notOlderOverGaps},
	} {
		t.Run(rule.name, func(t *testing.T) {
			t.Parallel()
			rule.check(t, newSupply(open(t)))
		})
	}
	t.Run("no history of a feed misleads a reader", func(t *testing.T) {
		t.Parallel()
		anyFeed(t, open)
	})
}

func firstState(t *testing.T, s *supply) {
	t.Helper()
	shown := func() { t.Error("a watch shows a state, and the replica was never fed one") }
	for _, start := range []model.Start{{}, {Held: model.At{Epoch: 7, Revision: 1}}, {NotOlderThan: model.At{Revision: 1}}, {NotOlderThan: model.At{Epoch: 7, Revision: 1}}} {
		endsUnseen(t, s.replica, start, shown)
	}
	if at := s.replica.At(); at != (model.At{}) {
		t.Errorf("a replica that was never fed is at %+v", at)
	}
	s.mustReject(t, s.put(model.At{Epoch: 7, Revision: 1}, saying(web, 1)))
	early := make(chan model.At, 1)
	go func() { early <- firstEnd(s.replica.Watch(t.Context(), model.Filter{})) }()
	want := model.At{Epoch: 7, Revision: 40}
	s.reset(t, want)
	if got := <-early; got != want {
		t.Errorf("a watch that waited for the first state shows %+v, want %+v", got, want)
	}
}

func givenMoments(t *testing.T, s *supply) {
	t.Helper()
	s.reset(t, model.At{Epoch: 9, Revision: 100}, saying(web, 1))
	r := watch(t, s.replica, model.Filter{}).prime()
	if r.at() != (model.At{Epoch: 9, Revision: 100}) {
		t.Errorf("the snapshot is of %+v", r.at())
	}
	for _, revision := range []uint64{101, 150, 151, 1 << 62} {
		at := model.At{Epoch: 9, Revision: revision}
		s.apply(t, s.put(at, saying(web, int(revision%1000)), saying(web1, int(revision%999))))
		if r.read(); r.at() != at || s.replica.At() != at {
			t.Errorf("notified of %+v and at %+v, want %+v", r.at(), s.replica.At(), at)
		}
		mustEqual(t, "watch", r.held, s.want)
		mustEqual(t, "list", listed(t, s.replica, model.Filter{}), s.want)
	}
}

// knownByReference feeds deletes as a feed does that never saw what it deletes.
func knownByReference(t *testing.T, s *supply) {
	t.Helper()
	s.reset(t, model.At{Epoch: 1, Revision: 5}, saying(web, 1), saying(web1, 2))
	r := watch(t, s.replica, model.Filter{}).prime()
	last := s.want[web]
	s.apply(t, s.drop(model.At{Epoch: 1, Revision: 9}, web))
	gone, ok := r.read().Events[0].(model.Delete)
	if !ok || !same(gone.Record, last) || gone.Revision != 9 {
		t.Errorf("given %+v, want the delete of %+v at revision 9", gone, last)
	}
}

func repeatedFeed(t *testing.T, s *supply) {
	t.Helper()
	s.reset(t, model.At{Epoch: 1})
	r := watch(t, s.replica, model.Filter{}).prime()
	var all []store.Decided
	for i := range 10 {
		d := s.put(model.At{Epoch: 1, Revision: uint64(3*i + 2)}, saying(nth(i%4), i))
		s.apply(t, d)
		r.read()
		for _, again := range append(all, d) {
			s.mustReject(t, again)
		}
		all = append(all, d)
	}
	last := s.put(model.At{Epoch: 1, Revision: 100}, saying(web, 1))
	s.apply(t, last)
	if r.read(); r.revision != 100 {
		t.Errorf("after a repeated feed a watcher is notified of revision %d, want 100", r.revision)
	}
	mustEqual(t, "what it holds", r.held, s.want)
}

func backwardFeed(t *testing.T, s *supply) {
	t.Helper()
	now := model.At{Epoch: 5, Revision: 50}
	s.reset(t, now, saying(web, 1))
	r := watch(t, s.replica, model.Filter{}).prime()
	for _, at := range []model.At{
		{Epoch: 5, Revision: 50},
		{Epoch: 5, Revision: 49},
		{Epoch: 5},
		{},
		{Epoch: 4, Revision: 51},
		{Epoch: 6, Revision: 51},
		{Revision: 51},
	} {
		s.mustReject(t, s.put(at, saying(web1, 1)))
	}
	for _, at := range []model.At{{Epoch: 5, Revision: 49}, {Revision: 51}, {}} {
		s.mustRejectState(t, at)
	}
	s.apply(t, s.put(model.At{Epoch: 5, Revision: 51}, saying(web, 2)))
	if r.read(); r.revision != 51 || r.resets > 0 {
		t.Errorf("after what was rejected a watcher is notified of revision %d, with %d resets", r.revision, r.resets)
	}
}
