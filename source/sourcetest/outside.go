package sourcetest

import (
	"context"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/store"
)

// Outside is a store whose commits are decided by somebody else than the processes
// that use it, such as a database. Each process has a replica of its own, which it
// feeds, and which lags behind. Its revisions have gaps.
type Outside struct {
	mu      sync.Mutex
	decided *store.Replica
	feed    *store.Feed
	log     []store.Decided // of the epoch
	more    chan struct{}   // closed when there is another commit, or another epoch
}

var _ Shared = (*Outside)(nil)

// firstEpoch is the one it begins with, which no process would choose by itself.
const firstEpoch = 1 << 40

// NewOutside returns one that has nothing stored.
func NewOutside() *Outside {
	o := &Outside{more: make(chan struct{})}
	o.decided, o.feed = store.NewReplica(store.Config{})
	must(o.feed.Reset(model.At{Epoch: firstEpoch}, "it starts", func(func(model.Record) bool) {}))
	return o
}

// must is for what a feed that is in order cannot answer with.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// decide gives commits revisions with gaps.
func (o *Outside) decide(c model.Commit) (model.At, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.decided.At()
	next := model.At{Epoch: now.Epoch, Revision: now.Revision + 1 + now.Revision%3}
	events, err := o.decided.Decide(c, next.Revision)
	if err != nil || len(events) == 0 {
		return now, err
	}
	d := store.Decided{At: next, Events: events, Observed: c.Observed, Committed: time.Now()}
	must(o.feed.Apply(d))
	o.log = append(o.log, d)
	o.wake()
	return next, nil
}

func (o *Outside) wake() {
	close(o.more)
	o.more = make(chan struct{})
}

// NewEpochWithout has it restored from a copy in which nothing is that lost selects.
func (o *Outside) NewEpochWithout(lost model.Filter) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := model.At{Epoch: o.decided.At().Epoch + 1}
	var all []model.Record
	for r := range o.decided.List(model.Filter{}) {
		if lost.Matches(r.Ref) {
			continue
		}
		at.Revision++
		r.Revision = at.Revision
		all = append(all, r)
	}
	must(o.feed.Reset(at, "it was restored", func(yield func(model.Record) bool) {
		for _, r := range all {
			if !yield(r) {
				return
			}
		}
	}))
	o.log = nil
	o.wake()
	return at.Epoch
}

// Process implements [Shared]. It begins with everything there is.
func (o *Outside) Process(ctx context.Context) Store {
	v := &view{outside: o}
	v.Replica, v.feed = store.NewReplica(store.Config{})
	v.begin()
	go v.follow(ctx)
	return v
}

// view is what one process has of the records.
type view struct {
	*store.Replica
	outside *Outside
	feed    *store.Feed
}

// begin takes over everything there is.
func (v *view) begin() {
	v.outside.mu.Lock()
	defer v.outside.mu.Unlock()
	must(v.feed.Reset(v.outside.decided.At(), "everything is read", v.outside.decided.List(model.Filter{})))
}

// next is the first commit that the view lacks; nil if it lacks none, or if it is of
// another epoch.
func (v *view) next() (d *store.Decided, epoch uint64, more <-chan struct{}) {
	o := v.outside
	o.mu.Lock()
	defer o.mu.Unlock()
	epoch = o.decided.At().Epoch
	for i := range o.log {
		if epoch == v.At().Epoch && o.log[i].At.Revision > v.At().Revision {
			return &o.log[i], epoch, o.more
		}
	}
	return nil, epoch, o.more
}

// follow feeds the replica, a moment late each time.
func (v *view) follow(ctx context.Context) {
	late := make(<-chan time.Time)
	for n := 0; ; n++ {
		d, epoch, more := v.next()
		if d != nil || epoch != v.At().Epoch {
			late, more = time.After(time.Duration(1+n%3)*time.Millisecond), nil
		}
		// Cases: there is more; a moment has passed since there was; the process ends.
		select {
		case <-more:
			continue
		case <-late:
		case <-ctx.Done():
			return
		}
		if d, epoch, _ := v.next(); d != nil {
			must(v.feed.Apply(*d))
		} else if epoch != v.At().Epoch {
			v.begin()
		}
	}
}

// Commit has it decided outside, and waits for what was decided to arrive here. A
// process that is killed meanwhile does not know what became of it.
func (v *view) Commit(ctx context.Context, c model.Commit) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	at, err := v.outside.decide(c)
	if err != nil {
		return 0, err
	}
	return at.Revision, v.Wait(ctx, at)
}
