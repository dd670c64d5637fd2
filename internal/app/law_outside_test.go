package app

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/store"
)

// lawStore is what histories ask of a store, whoever decides its commits.
type lawStore interface {
	source.Store
	At() model.At
	WatchFrom(ctx context.Context, f model.Filter, from model.Start) iter.Seq2[model.Batch, error]
}

// authority decides commits in another process, which goes on when this one
// ends. Its revisions have gaps.
type authority struct {
	p       *play
	mu      sync.Mutex // guards the rest
	decided *store.Replica
	feed    *store.Feed
	log     []store.Decided // of the epoch
	fed     *fed            // the replica of the process there is
}

// fed is a store that is read here and decided there. Its feed repeats itself,
// and loses its place.
type fed struct {
	*store.Replica
	feed   *store.Feed
	over   *authority
	notice chan struct{} // holds a token when there is something to be fed
}

var (
	_ records  = (*fed)(nil)
	_ lawStore = (*fed)(nil)
)

func newAuthority(p *play) *authority {
	a := &authority{p: p}
	a.decided, a.feed = store.NewReplica(store.Config{})
	a.must(a.feed.Reset(model.At{Epoch: 1}, "it starts", slices.Values([]model.Record(nil))))
	return a
}

func (a *authority) must(err error) {
	if err != nil {
		a.p.Errorf("the feed: %v", err)
	}
}

// replica is that of another process. It begins with everything there is.
func (a *authority) replica(c store.Config) *fed {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := &fed{over: a, notice: make(chan struct{}, 1)}
	f.Replica, f.feed = store.NewReplica(c)
	a.must(f.feed.Reset(a.decided.At(), "the process starts", a.decided.List(model.Filter{})))
	a.fed, a.log = f, nil
	ctx, stop := context.WithCancel(context.Background())
	a.p.finish = append(a.p.finish, stop)
	go f.run(ctx)
	return f
}

// Commit has the authority decide, and waits until that has come here.
func (f *fed) Commit(ctx context.Context, c model.Commit) (revision uint64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("commit: %w", err)
	}
	at, err := f.over.decide(c)
	if err != nil {
		return 0, err
	}
	f.wake()
	return at.Revision, f.Wait(ctx, at)
}

func (f *fed) wake() {
	select {
	case f.notice <- struct{}{}:
	default: // it is awake
	}
}

func (a *authority) decide(c model.Commit) (model.At, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.decided.At()
	next := model.At{Epoch: now.Epoch, Revision: now.Revision + 1 + now.Revision%3}
	events, err := a.decided.Decide(c, next.Revision)
	if err != nil || len(events) == 0 {
		return now, err
	}
	d := store.Decided{At: next, Events: events, Observed: c.Observed, Committed: time.Now()}
	a.must(a.feed.Apply(d))
	a.log = append(a.log, d)
	return next, nil
}

// run feeds a replica until ctx ends.
func (f *fed) run(ctx context.Context) {
	for {
		select {
		case <-f.notice:
			f.catchUp()
		case <-ctx.Done():
			return
		}
	}
}

// catchUp brings a replica what it lacks. Of some revisions it repeats what
// came before; at others it has lost its place and brings everything.
func (f *fed) catchUp() {
	a := f.over
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := a.decided.At(); now.Epoch != f.At().Epoch || now.Revision%11 == 5 && now != f.At() {
		a.must(f.feed.Reset(now, "the feed lost its place", a.decided.List(model.Filter{})))
	}
	for i, d := range a.log {
		if d.At.Epoch != f.At().Epoch || d.At.Revision <= f.At().Revision {
			continue
		}
		if i > 0 && d.At.Revision%4 == 1 {
			if _, ok := errors.AsType[*store.OrderError](f.feed.Apply(a.log[i-1])); !ok {
				a.p.Errorf("revision %d was fed twice and applied", a.log[i-1].At.Revision)
			}
		}
		a.must(f.feed.Apply(d))
	}
}

// restoreAuthority gives the authority another past, of the same content, and
// so another epoch. What a writer read before is of no use by then.
func (p *play) restoreAuthority() {
	a := p.authority
	if a == nil {
		return
	}
	p.settle()
	p.mu.Lock()
	for _, m := range p.mirrors { // what services had before is not known of the other past
		m.marks = newMarks()
	}
	p.mu.Unlock()
	a.mu.Lock()
	at := a.decided.At()
	at.Epoch++
	a.must(a.feed.Reset(at, "it was restored", a.decided.List(model.Filter{})))
	a.log = nil
	a.mu.Unlock()
	a.fed.wake()
	p.settle()
}
