package storetest

import (
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
)

// increasingRevisions lets several writers compete for few keys while watches are
// opened. The view that reads each watch rejects a revision out of order.
func increasingRevisions(t *testing.T, s Store) {
	t.Helper()
	refs := []model.Ref{web, web1, web2}
	var st storm
	for w := range 4 {
		var moves []move
		for i := range 250 {
			what := doPut
			if i%5 == 4 {
				what = doDrop
			}
			moves = append(moves, move{{refs[(w+i)%3], what}, {refs[(w+i+1)%3], doPut}})
		}
		st.writers = append(st.writers, moves)
		for i := range 2 {
			st.watches = append(st.watches, opening{after: 200*w + 100*i, lags: i == 1})
		}
	}
	st.run(t, t, s)
}

// openedAnytime opens watches one after the other while two records are changed
// together. Each watch reads one commit after its snapshot. The view rejects a commit
// that is part of the snapshot, and a gap between the two.
func openedAnytime(t *testing.T, s Store) {
	t.Helper()
	const commits = 5000
	put(t, s, saying(web1, 0), saying(web2, 0))
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := range commits {
			both := model.Commit{Writes: []model.Write{based(s, saying(web1, i+1)), based(s, saying(web2, i+1))}}
			if _, err := s.Commit(t.Context(), both); err != nil {
				t.Errorf("commit: %v", err)
				return
			}
		}
	})
	defer writer.Wait()
	for last := 0; last < commits; {
		mustBeTogether(t, "list", listed(t, s, model.Filter{}))
		last = openOnce(t, s, commits)
	}
}

// openOnce reads a snapshot and the commit after it, unless the snapshot is of the
// last commit already. It returns the commit that it reached.
func openOnce(t *testing.T, s Store, commits int) int {
	t.Helper()
	r, stop := watchUntil(t, t, s, model.Filter{})
	defer stop()
	if last := mustBeTogether(t, "snapshot", r.prime().held); last == commits {
		return last
	}
	r.readTo(r.revision + 1)
	return mustBeTogether(t, "watch", r.held)
}

// mustBeTogether expects both records as of one commit, and returns its number.
func mustBeTogether(t *testing.T, what string, held set) int {
	t.Helper()
	one, two := held[web1], held[web2]
	if len(held) != 2 || one.Revision != two.Revision || one.Generation != two.Generation {
		t.Fatalf("%s: two records that change together are\n%+v\n%+v", what, one, two)
	}
	return int(one.Generation) - 1
}

// foldedWatch compares each watch with a list, after every commit of any history.
func foldedWatch(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		s, l := open(t), &ledger{}
		readers := map[*reader]model.Filter{}
		for i, m := range rapid.SliceOfN(anyMove(), 1, 25).Draw(rt, "moves") {
			if rapid.Bool().Draw(rt, "watch") {
				f := anyFilter().Draw(rt, "filter")
				r, stop := watchUntil(t, rt, s, f)
				defer stop() //nolint:gocritic // they are few, and end together
				readers[r.prime()] = f
			}
			writes, changes := m.writes(s, i)
			revision, err := s.Commit(t.Context(), model.Commit{Writes: writes})
			if err != nil {
				if !m.has(doStale) {
					rt.Fatalf("commit: %v", err)
				}
				continue
			}
			if changes {
				l.note(revision, writes)
			}
			compareAll(rt, s, l, readers)
		}
	})
}

// compareAll brings every reader up to date and compares it. A reader that sees
// nothing of the commit must not be notified of it: its next batch would be of the
// wrong revision.
func compareAll(t failer, s Store, l *ledger, readers map[*reader]model.Filter) {
	t.Helper()
	moments := l.moments()
	last := moments[len(moments)-1]
	for r, f := range readers {
		want := last.seen(f)
		if !matches(r.held, want) {
			r.read()
			if r.revision != last.revision {
				t.Fatalf("notified of revision %d, and the commit was %d", r.revision, last.revision)
			}
		}
		mustMatch(t, "watch", r.held, want)
		mustEqual(t, "list", listed(t, s, f), r.held)
	}
}
