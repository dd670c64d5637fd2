package supervise_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/store"
)

// ledger is a store that keeps every commit it took, and that can be set to
// reject some or to be changed by somebody else.
type ledger struct {
	memory  *store.Memory
	saved   time.Time // when what it began with was last known to be current
	commits []model.Commit
	noops   []model.Ref // writes that changed nothing
	mu      sync.Mutex  // of reject, where nothing else orders its readers
	reject  int         // so many commits fail from here on
	lost    int         // so many commits from here on come about, and are answered with an error
	before  func(model.Commit)
}

func newLedger() *ledger { return &ledger{memory: store.NewMemory(store.Config{})} }

func (l *ledger) List(f model.Filter) iter.Seq[model.Record] { return l.memory.List(f) }

func (l *ledger) Revision() uint64 { return l.memory.Revision() }

func (l *ledger) Commit(ctx context.Context, c model.Commit) (uint64, error) {
	if l.before != nil {
		l.before(c)
	}
	if l.rejects() {
		return 0, errors.New("the store is away")
	}
	var noops []model.Ref
	for _, w := range c.Writes {
		have, stored := l.memory.Get(w.Record.Ref)
		if w.Delete && !stored || !w.Delete && stored && have.SameContent(w.Record) {
			noops = append(noops, w.Record.Ref)
		}
	}
	// The supervisor, not the store, is to mind that its context has ended.
	revision, err := l.memory.Commit(context.WithoutCancel(ctx), c)
	if err == nil {
		l.commits, l.noops = append(l.commits, c), append(l.noops, noops...)
	}
	if l.lost > 0 {
		l.lost--
		return 0, errors.New("nobody knows whether the store took it")
	}
	return revision, err
}

func (l *ledger) rejects() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reject == 0 {
		return false
	}
	l.reject--
	return true
}

// rejectNext has so many commits fail from here on, and returns how many of earlier ones are left.
func (l *ledger) rejectNext(n int) (left int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left, l.reject = l.reject, n
	return left
}

// last returns the writes of the last commit, one line each.
func (l *ledger) last() (lines []string) {
	if len(l.commits) == 0 {
		return nil
	}
	for _, w := range l.commits[len(l.commits)-1].Writes {
		verb := "update "
		switch {
		case w.Delete:
			verb = "delete "
		case w.Record.Revision == 0:
			verb = "create "
		}
		lines = append(lines, verb+title(w.Record.Ref))
	}
	slices.Sort(lines)
	return lines
}
