package storetest

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// judge compares the events of each watch with the commits.
func (st storm) judge(t failer, s Store, truth []moment, diaries []diary) {
	t.Helper()
	for i, d := range diaries {
		f := st.watches[i].filter
		if d.err != nil {
			t.Fatalf("watch %d of %+v: %v", i, st.watches[i], d.err)
		}
		for _, m := range d.moments {
			then, _ := at(truth, m.revision)
			if want := then.seen(f); !matches(m.records, want) {
				mustMatch(t, "watch, folded", m.records, want)
			}
		}
		for _, revision := range d.deltas {
			if _, committed := at(truth, revision); !committed {
				t.Fatalf("watch %d was notified of revision %d, which nobody committed", i, revision)
			}
		}
		for _, e := range d.absent {
			if !deletedAfter(truth, e) {
				t.Fatalf("rule 5: %s was delivered at revision %d, then not found, and nobody deleted it", e.Record.Ref, e.Revision)
			}
		}
		mustEqual(t, "list after the storm", listed(t, s, f), d.moments[len(d.moments)-1].records)
	}
}

func deletedAfter(truth []moment, e model.Delete) bool {
	return slices.ContainsFunc(truth, func(m moment) bool {
		_, ok := m.records[e.Record.Ref]
		return m.revision > e.Revision && !ok
	})
}

// judgeLists expects each list to be of one revision, and no list to be older than the
// list before it.
func judgeLists(t failer, truth []moment, lists []set) {
	t.Helper()
	from := 0
	for _, list := range lists {
		i := slices.IndexFunc(truth[from:], func(m moment) bool { return matches(list, m.records) })
		if i < 0 {
			t.Fatalf("a list is of no revision from %d on: %v", truth[from].revision, list)
		}
		from += i
	}
}
