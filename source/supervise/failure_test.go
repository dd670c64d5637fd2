package supervise_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
)

func TestFailureKeepsEveryRecord(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.fail("connection refused")
		b.inState(source.StateListing)
		mentions(t, b.Status().Reason, "connection refused", "trying again")
		time.Sleep(time.Minute)
		b.list(service("a", "f", "1"))
		listed := time.Now()
		time.Sleep(time.Hour)
		b.fail("connection reset")
		st := b.Status()
		if st.State != source.StateStale || !st.Since.Equal(time.Now()) || !st.LastListing.Equal(listed) {
			t.Errorf("after the failure: %+v", st)
		}
		began := time.Now()
		time.Sleep(time.Minute)
		b.fail("no route")
		if st := b.Status(); !st.Since.Equal(began) {
			t.Errorf("stale since %s, want since the first failure %s", st.Since, began)
		}
		mentions(t, b.Status().Reason, "no route")
		b.holds("Endpoint ns/a/1", "Service ns/a in f")
		time.Sleep(time.Minute)
		b.list(service("a", "f", "1"))
		b.inState(source.StateLive)
		if reason := b.Status().Reason; reason != "" {
			t.Errorf("live with reason %q", reason)
		}
	})
}

func TestRestartedSourceListsFirst(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", "f"))
		b.fail("reset")
		time.Sleep(time.Minute)
		err := b.do(func(ctx context.Context, sink source.Sink) error {
			return sink.Replace(ctx, model.Listing{Places: []string{"f"}})
		})
		if err == nil {
			t.Error("a partial listing was taken from a source that has not listed since it failed")
		}
		b.holds("Service ns/a in f")
	})
}

func TestRejectedCommitIsTriedAgain(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.store.reject = 3
		stays := service("stays", "f", "2")
		b.list(service("a", "f", "1"), stays)
		before := []string{"Endpoint ns/a/1", "Endpoint ns/stays/2", "Service ns/a in f", "Service ns/stays in f"}
		b.holds(before...)
		b.store.reject = 4
		err := b.do(func(ctx context.Context, sink source.Sink) error {
			return sink.Replace(ctx, model.Listing{Objects: []model.Object{stays}})
		})
		if err == nil {
			t.Fatal("a store that is away took a listing")
		}
		mentions(t, err.Error(), "the store is away")
		b.inState(source.StateStale)
		b.holds(before...)
		b.list(stays)
		b.holds("Endpoint ns/stays/2", "Service ns/stays in f")
		b.inState(source.StateLive)
	})
}

// TestConflictIsReadAgain has somebody else write between the comparison and
// the commit.
func TestConflictIsReadAgain(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", "f", "1"), service("b", "g"))
		b.store.before = func(model.Commit) {
			b.store.before = nil
			touch(t, b.store.memory, "reg")
		}
		b.replace(model.Listing{Places: []string{"f"}, Objects: []model.Object{service("a", "f", "2")}})
		b.holds("Endpoint ns/a/2", "Service ns/a in f", "Service ns/b in g stale: touched")
	})
}

// TestObjectMovedBySomebodyElse has a record stand elsewhere than the
// supervisor remembers: what is stored decides.
func TestObjectMovedBySomebodyElse(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", "f"), service("b", "f"))
		moved, _ := b.store.memory.Get(stored(model.KindService, "a"))
		moved.Place = "g"
		if _, err := b.store.Commit(t.Context(), model.Commit{Writes: []model.Write{{Record: moved}}}); err != nil {
			t.Fatal(err)
		}
		b.replace(model.Listing{Places: []string{"f"}})
		b.holds("Service ns/a in g")
	})
}

func TestStatusMayBeReadFromAnywhere(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := supervise.New("reg", sourceFunc(func(ctx context.Context, sink source.Sink) error {
		defer cancel()
		for i := range 200 {
			l := model.Listing{Rejected: []model.Rejection{bad("f", "a", strconv.Itoa(i))}, Ignored: map[string]int{"x": i}}
			if err := sink.Replace(ctx, l); err != nil {
				t.Error(err)
			}
		}
		return nil
	}), newLedger(), supervise.Config{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for total := uint64(0); ctx.Err() == nil; {
			st := s.Status()
			if st.RejectedTotal < total || st.RejectedTotal > 0 && (len(st.Rejected) != 1 || len(st.Ignored) != 1) {
				t.Errorf("torn status %+v after %d", st, total)
			}
			total = st.RejectedTotal
		}
	})
	if err := s.Run(ctx); err != nil {
		t.Error(err)
	}
	reader.Wait()
}

func TestNothingIsReadWhileStopping(t *testing.T) {
	l := newLedger()
	ctx, cancel := context.WithCancel(t.Context())
	src := sourceFunc(func(ctx context.Context, sink source.Sink) error {
		if err := sink.Replace(ctx, model.Listing{Objects: []model.Object{service("a", "f")}}); err != nil {
			t.Error(err)
		}
		cancel()
		// What a careless source makes of a read that was cut short:
		return sink.Replace(ctx, model.Listing{})
	})
	s := supervise.New("reg", src, l, supervise.Config{})
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if st := s.Status(); st.State != source.StateLive || st.Services != 1 || len(l.commits) != 1 {
		t.Errorf("after stopping: %+v with %d commits", st, len(l.commits))
	}
}

type sourceFunc func(context.Context, source.Sink) error

func (f sourceFunc) Run(ctx context.Context, sink source.Sink) error { return f(ctx, sink) }

// touch changes the status of every record of a source.
func touch(t testing.TB, s supervise.Store, name string) {
	t.Helper()
	var c model.Commit
	for rec := range s.List(model.Filter{Source: name}) {
		rec.Status.Stale = "touched"
		c.Writes = append(c.Writes, model.Write{Record: rec})
	}
	if _, err := s.Commit(t.Context(), c); err != nil {
		t.Error(err)
	}
}

// A listing whose commit came about, though the store answered with an error, is read
// and compared again. It confirms a drop once all the same.
func TestListingConfirmsOnceWhateverTheStoreAnswers(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 3, 3)...)
		b.store.lost = 1
		b.list()
		b.standing(9, 12)
		time.Sleep(time.Minute)
		b.list()
		b.standing(9, 12) // after two listings
		b.list()
		b.standing(0, 0)
	})
}
