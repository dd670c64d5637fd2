package sourcetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/store"
)

func isConflict(err error) bool {
	var c *store.ConflictError
	return errors.As(err, &c)
}

func inMemory(context.Context) Shared { return SingleProcess{store.NewMemory(store.Config{})} }

func TestWrittenInMemory(t *testing.T) { RunWritten(t, inMemory, isConflict) }

func TestWrittenFedFromOutside(t *testing.T) { RunWritten(t, fedFromOutside, isConflict) }

// authority decides commits for processes that each have a replica of their own,
// which lags behind it.
type authority struct {
	mu      sync.Mutex
	replica *store.Replica
	feed    *store.Feed
	log     []store.Decided
	more    chan struct{} // closed when there is another commit
}

const givenEpoch = 1 << 40

func fedFromOutside(context.Context) Shared {
	a := &authority{more: make(chan struct{})}
	a.replica, a.feed = store.NewReplica(store.Config{})
	if err := a.feed.Reset(model.At{Epoch: givenEpoch}, "it starts", slices.Values([]model.Record(nil))); err != nil {
		panic(err)
	}
	return a
}

// decide gives commits revisions with gaps.
func (a *authority) decide(c model.Commit) (model.At, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.replica.At()
	next := model.At{Epoch: givenEpoch, Revision: now.Revision + 1 + now.Revision%3}
	events, err := a.replica.Decide(c, next.Revision)
	if err != nil || len(events) == 0 {
		return now, err
	}
	d := store.Decided{At: next, Events: events, Observed: c.Observed, Committed: time.Now()}
	if err := a.feed.Apply(d); err != nil {
		return now, err
	}
	a.log = append(a.log, d)
	close(a.more)
	a.more = make(chan struct{})
	return next, nil
}

func (a *authority) since(n int) (list []store.Decided, more <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.log[n:], a.more
}

// Process implements [Shared].
func (a *authority) Process(ctx context.Context) Store {
	v := &view{authority: a}
	v.Replica, v.feed = store.NewReplica(store.Config{})
	if err := v.feed.Reset(model.At{Epoch: givenEpoch}, "it starts", slices.Values([]model.Record(nil))); err != nil {
		panic(err)
	}
	go v.follow(ctx)
	return v
}

// view is what one process has of the authority's records.
type view struct {
	*store.Replica
	authority *authority
	feed      *store.Feed
}

// follow feeds the replica, a moment late each time.
func (v *view) follow(ctx context.Context) {
	for n := 0; ; {
		list, more := v.authority.since(n)
		for _, d := range list {
			time.Sleep(time.Duration(1+n%3) * time.Millisecond)
			if err := v.feed.Apply(d); err != nil {
				panic(err)
			}
			n++
		}
		if len(list) > 0 {
			continue
		}
		// Cases: there is more; the process ends.
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}

// Commit has the authority decide, and waits for what it decided to arrive here. A
// process that is killed meanwhile does not know what became of it.
func (v *view) Commit(ctx context.Context, c model.Commit) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	at, err := v.authority.decide(c)
	if err != nil {
		return 0, err
	}
	return at.Revision, v.Wait(ctx, at)
}

func supervise(name string, src source.Source, s source.Store) Supervised {
	return source.NewSupervisor(name, src, s, source.Config{})
}

func TestBaselineInMemory(t *testing.T) { RunBaseline(t, inMemory, supervise) }

func TestBaselineFedFromOutside(t *testing.T) { RunBaseline(t, fedFromOutside, supervise) }
