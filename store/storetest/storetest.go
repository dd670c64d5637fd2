// Package storetest is the suite that every store must pass, on any backend.
//
// The correctness of readers depends on these rules; each is a subtest with the rule's
// number in its name. [Run] uses only the methods of [Store], so a backend needs no
// hooks for it. Conflicts are expected as [*store.ConflictError]. Revisions may leave
// gaps.
package storetest

import (
	"context"
	"iter"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
)

// Store is a store under test. [store.Memory] documents each method.
type Store interface {
	Commit(ctx context.Context, c model.Commit) (revision uint64, err error)
	Readable
}

// Readable has the methods of readers. [store.Replica] documents each of them.
type Readable interface {
	Get(ref model.Ref) (model.Record, bool)
	List(f model.Filter) iter.Seq[model.Record]
	Watch(ctx context.Context, f model.Filter) iter.Seq2[model.Batch, error]
	WatchFrom(ctx context.Context, f model.Filter, from model.Start) iter.Seq2[model.Batch, error]
}

// History is the number of events that a store under test must be set to keep for
// watchers that lag. HistoryBytes is the limit of their memory.
const (
	History      = 256
	HistoryBytes = 16 << 20
)

// Run checks the store that open returns. Each call of open returns a new, empty store
// that keeps [History] events of [HistoryBytes]. No other writer may use it. Several
// stores are used at the same time. One rule is about memory: a test that calls Run is not
// parallel, so that nothing else allocates meanwhile.
func Run(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	t.Run("rule 09 a slow watcher is reset alone", func(t *testing.T) { slowWatcher(t, open(t)) })
	for _, rule := range []struct {
		name  string
		check func(t *testing.T, open func(t *testing.T) Store)
	}{
		{"rule 01 the snapshot is an exact set", fresh(exactSnapshot)},
		{"rule 01 the snapshot is of one revision", fresh(snapshotDuringWrites)},
		{"rule 02 every snapshot ends once", endOfSnapshot},
		{"rule 03 revisions of a key increase", fresh(increasingRevisions)},
		{"rule 04 a watch may be opened at any moment", fresh(openedAnytime)},
		{"rule 04 snapshot and deltas fold to the list", foldedWatch},
		{"rule 05 what was delivered can be read", fresh(monotonicReads)},
		{"rule 05 a delete carries the last record", fresh(deleteCarriesRecord)},
		{"rule 06 every life has its own uid", fresh(newLife)},
		{"rule 08 a reader that returns is given what it missed", fresh(resumed)},
		{"rule 08 a reader that was away too long is reset", fresh(resumedTooLate)},
		{"rule 08 readers come and go among writers", fresh(resumedDuringWrites)},
		{"rule 08 no history leaves a gap", resumedAnyway},
		{"rule 09 a slow watcher is bounded in bytes", fresh(slowWatcherOfMuch)},
		{"rule 10 a watch waits to be not older", fresh(notOlder)},
		{"rule 11 a returned record cannot change the store", fresh(noWayIn)},
		{"rule 11 a batch is its reader's to keep", fresh(keptBatches)},
		{"rule 12 equal content is no event", fresh(equalContent)},
		{"rule 13 a failure is an error", fresh(failures)},
		{"rule 14 writes compare and set", fresh(compareAndSet)},
		{"rule 14 a commit is whole or not at all", fresh(allOrNothing)},
		{"rule 14 a write that makes no sense is rejected", fresh(rejectedWrites)},
		{"rule 15 filters show the same set everywhere", fresh(sameSets)},
		{"rules 01 to 06 hold in any storm", anyStorm},
	} {
		t.Run(rule.name, func(t *testing.T) {
			t.Parallel()
			rule.check(t, open)
		})
	}
}

// fresh gives a new store to a check that needs one.
func fresh(check func(t *testing.T, s Store)) func(*testing.T, func(*testing.T) Store) {
	return func(t *testing.T, open func(t *testing.T) Store) {
		t.Helper()
		check(t, open(t))
	}
}
