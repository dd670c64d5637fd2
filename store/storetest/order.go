package storetest

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
)

// increasingRevisions lets several writers fight for few keys while watches
// are opened. The view that reads each watch refuses a revision out of order.
func increasingRevisions(t *testing.T, s Store) {
	t.Helper()
	refs := []model.Ref{web, web1, web2}
	var st storm
	for w := range 4 {
		var moves []move
		for i := range 40 {
			what := doPut
			if i%5 == 4 {
				what = doDrop
			}
			moves = append(moves, move{{refs[(w+i)%3], what}, {refs[(w+i+1)%3], doPut}})
		}
		st.writers = append(st.writers, moves)
		for i := range 2 {
			st.watches = append(st.watches, opening{after: 20*w + 10*i, lags: i == 1})
		}
	}
	st.run(t, t, s)
}

// foldedWatch compares, after every commit of any history, what each watch
// holds with a list.
func foldedWatch(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		s, l := open(t), &ledger{}
		readers := map[*reader]model.Filter{}
		for i, m := range rapid.SliceOfN(anyMove(), 1, 25).Draw(rt, "moves") {
			if rapid.Bool().Draw(rt, "watch") {
				f := anyFilter().Draw(rt, "filter")
				r, stop := watchUntil(t, rt, s, f)
				defer stop()
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

// compareAll brings every reader up to date and compares it. A reader that is
// shown nothing of the commit must not be told of it; were it told, its next
// batch would be of the wrong revision.
func compareAll(t failer, s Store, l *ledger, readers map[*reader]model.Filter) {
	t.Helper()
	moments := l.moments()
	last := moments[len(moments)-1]
	for r, f := range readers {
		want := last.seen(f)
		if !matches(r.held, want) {
			r.read()
			if r.revision != last.revision {
				t.Fatalf("told of revision %d, and the commit was %d", r.revision, last.revision)
			}
		}
		mustMatch(t, "watch", r.held, want)
		mustEqual(t, "list", listed(t, s, f), r.held)
	}
}
