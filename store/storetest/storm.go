package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/store"
)

// storm is writers and watches that run at the same time.
type storm struct {
	writers [][]move
	watches []opening
}

// opening is a watch that is opened during a storm.
type opening struct {
	filter model.Filter
	after  int  // commits before it is opened
	lags   bool // reads nothing between its snapshot and the end of the storm
}

// run runs the storm, then compares everything that was read with the commits in the
// ledger.
func (st storm) run(t *testing.T, on failer, s Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l, calm := &ledger{}, make(chan struct{})

	var reading, writing sync.WaitGroup
	diaries := make([]diary, len(st.watches))
	for i, o := range st.watches {
		reading.Go(func() { diaries[i] = o.keep(ctx, s, l, calm) })
	}
	var lists []set
	reading.Go(func() { lists = collectLists(ctx, s, l, calm) })
	failed := make([]error, len(st.writers))
	for i, moves := range st.writers {
		writing.Go(func() { failed[i] = write(ctx, s, l, i, moves) })
	}
	writing.Wait()
	end := markers()
	revision, err := s.Commit(ctx, model.Commit{Writes: end})
	l.note(revision, end)
	if err != nil {
		cancel() // The readers would wait for it.
	}
	close(calm)
	reading.Wait()

	if err := errors.Join(append(failed, err)...); err != nil {
		on.Fatalf("writing: %v", err)
	}
	st.judge(on, s, l.moments(), diaries)
	judgeLists(on, l.moments(), lists)
}

// write makes the moves of one writer. After a conflict, the writer reads again,
// unless the move intended the conflict.
func write(ctx context.Context, s Store, l *ledger, writer int, moves []move) error {
	for i, m := range moves {
		err := m.make(ctx, s, l, 1000*(writer+1)+i)
		for isConflict(err) && !m.has(doStale) {
			err = m.make(ctx, s, l, 1000*(writer+1)+i)
		}
		if err != nil && !isConflict(err) {
			return fmt.Errorf("writer %d, move %d: %w", writer, i, err)
		}
	}
	return nil
}

// make commits the move, based on the stored records, and notes it.
func (m move) make(ctx context.Context, s Store, l *ledger, n int) error {
	writes, changes := m.writes(s, n)
	runtime.Gosched() // lets another writer come between
	revision, err := s.Commit(ctx, model.Commit{Writes: writes})
	if err == nil && changes {
		l.note(revision, writes)
	}
	return err
}

func isConflict(err error) bool {
	var c *store.ConflictError
	return errors.As(err, &c)
}
