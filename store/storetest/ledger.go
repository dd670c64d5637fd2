package storetest

import (
	"maps"
	"slices"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/model"
)

// ledger records commits. From them alone it derives the records that a store must
// hold at each revision. Any number of goroutines may write to it.
type ledger struct {
	mu      sync.Mutex
	entries []entry
	marks   []mark
}

type entry struct {
	revision uint64
	writes   []model.Write
}

// mark is closed when so many commits are recorded.
type mark struct {
	entries int
	reached chan struct{}
}

// note records a commit with a change.
func (l *ledger) note(revision uint64, writes []model.Write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, entry{revision, writes})
	l.marks = slices.DeleteFunc(l.marks, func(m mark) bool {
		due := len(l.entries) >= m.entries
		if due {
			close(m.reached)
		}
		return due
	})
}

// reached returns a channel that is closed once so many commits are recorded.
func (l *ledger) reached(entries int) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := mark{entries, make(chan struct{})}
	if len(l.entries) >= entries {
		close(m.reached)
	} else {
		l.marks = append(l.marks, m)
	}
	return m.reached
}

// moment is the expected records at a revision, without uids.
type moment struct {
	revision uint64
	records  set
}

// moments returns every revision, the oldest first. The first is the empty store.
func (l *ledger) moments() []moment {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.SortFunc(l.entries, func(a, b entry) int { return int(a.revision) - int(b.revision) })
	out := []moment{{0, set{}}}
	for _, e := range l.entries {
		records := maps.Clone(out[len(out)-1].records)
		for _, w := range e.writes {
			replay(records, w, e.revision)
		}
		out = append(out, moment{e.revision, records})
	}
	return out
}

func replay(records set, w model.Write, revision uint64) {
	before, ok := records[w.Record.Ref]
	switch {
	case w.Delete:
		delete(records, w.Record.Ref)
	case !ok || !before.SameContent(w.Record):
		r := w.Record
		r.UID, r.Revision, r.Generation = model.UID{}, revision, before.Generation+1
		records[r.Ref] = r
	}
}

// at returns the moment at a revision, and whether it began there.
func at(moments []moment, revision uint64) (m moment, began bool) {
	i, began := slices.BinarySearchFunc(moments, revision, func(m moment, r uint64) int { return int(m.revision) - int(r) })
	if !began {
		i--
	}
	return moments[i], began
}

// seen returns the records of the moment that a filter selects.
func (m moment) seen(f model.Filter) set {
	out := maps.Clone(m.records)
	maps.DeleteFunc(out, func(ref model.Ref, _ model.Record) bool { return !f.Matches(ref) })
	return out
}

// matches compares read records with the expected ones; the store chooses the uids.
func matches(got, want set) bool {
	return maps.EqualFunc(got, want, func(g, w model.Record) bool {
		return g.UID != model.UID{} && g.Revision == w.Revision && g.Generation == w.Generation && g.SameContent(w)
	})
}

func mustMatch(t failer, what string, got, want set) {
	t.Helper()
	if !matches(got, want) {
		t.Fatalf("%s (-want +got; uids are not compared):\n%s", what, cmp.Diff(want, got))
	}
}
