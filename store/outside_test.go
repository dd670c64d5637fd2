package store_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/store"
	"github.com/isthmus-mesh/isthmus/store/storetest"
)

// A store whose commits are decided elsewhere keeps the rules of any store,
// however its feed fails.
func TestAStoreFedFromOutsideKeepsTheRules(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Store { t.Helper(); return openOutside(t) })
}

// outside is a store that is read here and decided elsewhere: an authority
// gives the revisions, with gaps, and the epoch, and a feed of its own pace
// brings them to the replica. The feed comes late, repeats itself, and is cut
// off and resumed.
type outside struct {
	*store.Replica
	feed   *store.Feed
	chance *rand.Rand      // of the feed's goroutine
	fed    context.Context //nolint:containedctx // ends when the feed does

	mu        sync.Mutex // guards the authority
	authority *store.Replica
	decide    *store.Feed
	start     model.At       // of the epoch
	base      []model.Record // the authority's state then
	log       []store.Decided
	woken     chan struct{} // holds a token when there is something to be fed
	restored  chan struct{} // closed once the replica is in the epoch; one restores at a time
}

const firstEpoch = 1 << 40

func openOutside(t *testing.T) *outside {
	t.Helper()
	o := &outside{chance: rand.New(rand.NewPCG(1, 2)), start: model.At{Epoch: firstEpoch}, woken: make(chan struct{}, 1), restored: make(chan struct{})}
	o.Replica, o.feed = store.NewReplica(store.Config{History: storetest.History, HistoryBytes: storetest.HistoryBytes})
	o.authority, o.decide = store.NewReplica(store.Config{History: 1})
	if err := o.decide.Reset(o.start, "it starts", slices.Values(o.base)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	o.fed = ctx
	go func() {
		defer stop()
		ended <- o.run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the feed failed: %v", err)
		}
	})
	o.wake()
	return o
}

func (o *outside) wake() {
	select {
	case o.woken <- struct{}{}:
	default:
	}
}

// Commit has the authority decide, and waits for its commit to arrive here.
func (o *outside) Commit(ctx context.Context, c model.Commit) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("commit: %w", err)
	}
	at, err := o.decideOn(c)
	if err != nil {
		return 0, err
	}
	o.wake()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(o.fed, cancel)()
	return at.Revision, o.Wait(ctx, at)
}

func (o *outside) decideOn(c model.Commit) (model.At, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.authority.At()
	next := model.At{Epoch: o.start.Epoch, Revision: now.Revision + 1 + now.Revision%3}
	events, err := o.authority.Decide(c, next.Revision)
	if err != nil || len(events) == 0 {
		return now, err
	}
	d := store.Decided{At: next, Events: events, Observed: c.Observed, Committed: time.Now()}
	if err := o.decide.Apply(d); err != nil {
		return now, err
	}
	o.log = append(o.log, d)
	return next, nil
}

// Restore gives the authority another past, and so another epoch.
func (o *outside) Restore(revision uint64, saved iter.Seq[model.Record]) error {
	all := slices.Collect(saved)
	o.mu.Lock()
	at := model.At{Epoch: o.start.Epoch + 1, Revision: revision}
	if err := o.decide.Reset(at, "it was restored", slices.Values(all)); err != nil {
		o.mu.Unlock()
		return err
	}
	restored := make(chan struct{})
	o.start, o.base, o.log, o.restored = at, all, nil, restored
	o.mu.Unlock()
	o.wake()
	<-restored
	return nil
}

// run feeds until ctx ends or the replica rejects what it must take.
func (o *outside) run(ctx context.Context) error {
	for {
		// Cases: there is something to be fed; the test is over.
		select {
		case <-o.woken:
		case <-ctx.Done():
			return nil
		}
		if err := o.catchUp(); err != nil {
			return err
		}
	}
}

// catchUp is one connection of the feed: it reads the log from where the
// replica stands. When it is cut off another one follows.
func (o *outside) catchUp() error {
	for again := true; again; {
		pending, past, err := o.open()
		if err != nil {
			return err
		}
		again = false
		for _, d := range pending {
			if o.chance.IntN(10) == 0 {
				again = true // cut off
				break
			}
			o.delay()
			if err := o.deliver(d, past); err != nil {
				return err
			}
			past = append(past, d)
		}
	}
	return nil
}

// open brings the replica into the authority's epoch and returns what it lacks,
// and some of what it has.
func (o *outside) open() (pending, past []store.Decided, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.At().Epoch != o.start.Epoch {
		if err := o.feed.Reset(o.start, "the feed is in another epoch", slices.Values(o.base)); err != nil {
			return nil, nil, err
		}
		close(o.restored)
	}
	held := slices.IndexFunc(o.log, func(d store.Decided) bool { return d.At.Revision > o.At().Revision })
	if held < 0 {
		held = len(o.log)
	}
	o.log = slices.Clone(o.log[max(held-3, 0):])
	held = min(held, 3)
	return slices.Clone(o.log[held:]), slices.Clone(o.log[:held]), nil
}

// deliver feeds a commit, at times after ones that were fed before.
func (o *outside) deliver(d store.Decided, past []store.Decided) error {
	if len(past) > 0 && o.chance.IntN(4) == 0 {
		repeated := past[o.chance.IntN(len(past))]
		if _, ok := errors.AsType[*store.OrderError](o.feed.Apply(repeated)); !ok {
			return fmt.Errorf("revision %d was applied twice", repeated.At.Revision)
		}
	}
	return o.feed.Apply(d)
}

func (o *outside) delay() {
	for range o.chance.IntN(4) {
		runtime.Gosched()
	}
	if o.chance.IntN(50) == 0 {
		<-time.After(time.Duration(o.chance.IntN(500)) * time.Microsecond)
	}
}
