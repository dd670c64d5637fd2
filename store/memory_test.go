package store_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/store"
)

func endpoint(i int) model.Record {
	return model.Record{
		Ref: model.Ref{Kind: model.KindEndpoint, Key: model.Key{
			Source: "files", Namespace: "default", Name: fmt.Sprintf("web-%d/%02d", i/20, i%20),
		}},
		Spec: model.Endpoint{Address: fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)},
	}
}

// endpoints returns one commit that creates n records.
func endpoints(n int) model.Commit {
	writes := make([]model.Write, n)
	for i := range writes {
		writes[i].Record = endpoint(i)
	}
	return model.Commit{Writes: writes}
}

func mustCommit(t testing.TB, m *store.Memory, c model.Commit) uint64 {
	t.Helper()
	revision, err := m.Commit(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// endOf reads a watch up to the end of its snapshot.
func endOf(t testing.TB, m *store.Memory) model.EndOfSnapshot {
	t.Helper()
	for b, err := range m.Watch(t.Context(), model.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if end, ok := b.Events[len(b.Events)-1].(model.EndOfSnapshot); ok {
			return end
		}
	}
	panic("unreachable: a watch does not end by itself")
}

func TestRevisionsStartAtOne(t *testing.T) {
	t.Parallel()
	m := store.NewMemory(store.Config{})
	if got := m.Revision(); got != 0 {
		t.Errorf("an empty store is at revision %d", got)
	}
	for want := range uint64(3) {
		if got := mustCommit(t, m, model.Commit{Writes: []model.Write{{Record: endpoint(int(want))}}}); got != want+1 {
			t.Errorf("commit %d has revision %d", want+1, got)
		}
	}
	if got := m.Revision(); got != 3 {
		t.Errorf("after three commits the store is at revision %d", got)
	}
}

func TestEveryStartIsAnEpoch(t *testing.T) {
	t.Parallel()
	a, b := store.NewMemory(store.Config{}), store.NewMemory(store.Config{})
	if first := endOf(t, a).Epoch; first != endOf(t, a).Epoch {
		t.Error("two watches of one store tell different epochs")
	}
	if endOf(t, a).Epoch == endOf(t, b).Epoch || endOf(t, a).Epoch == 0 {
		t.Error("two stores tell the same epoch, or none")
	}
}

func TestAListStaysAtItsRevision(t *testing.T) {
	t.Parallel()
	m := store.NewMemory(store.Config{})
	mustCommit(t, m, endpoints(10))
	list := m.List(model.Filter{})
	before := slices.Collect(list)
	mustCommit(t, m, model.Commit{Writes: []model.Write{
		{Record: endpoint(10)},
		{Record: before[0], Delete: true},
		touch(m, 1, 5).Writes[0],
	}})
	if diff := cmp.Diff(before, slices.Collect(list)); diff != "" {
		t.Errorf("the list, after a commit (-before +after):\n%s", diff)
	}
}

// No lock is held while a reader is given something.
func TestReadersMayUseTheStore(t *testing.T) {
	t.Parallel()
	m := store.NewMemory(store.Config{})
	mustCommit(t, m, endpoints(10))
	next := 10
	for range m.List(model.Filter{}) {
		mustCommit(t, m, model.Commit{Writes: []model.Write{{Record: endpoint(next)}}})
		next++
	}
	for range m.Watch(t.Context(), model.Filter{}) {
		mustCommit(t, m, model.Commit{Writes: []model.Write{{Record: endpoint(next)}}})
		if next++; next == 30 {
			break
		}
	}
	if got := m.Revision(); got != 21 {
		t.Errorf("the store is at revision %d, want 21", got)
	}
}

func TestConflictsSayHowToGoOn(t *testing.T) {
	t.Parallel()
	err := &store.ConflictError{
		Ref:    model.Ref{Kind: model.KindService, Key: model.Key{Source: "files", Namespace: "default", Name: "web"}},
		Wanted: store.Version{UID: model.UID{1}, Revision: 5},
		Stored: store.Version{UID: model.UID{2}, Revision: 7},
	}
	got := map[store.Reason]string{}
	for _, err.Reason = range []store.Reason{
		store.ReasonExists, store.ReasonMissing, store.ReasonOtherLife, store.ReasonSuperseded,
	} {
		got[err.Reason] = err.Error()
	}
	want := map[store.Reason]string{
		store.ReasonExists: "Service files:default/web: exists at revision 7, and the write expects no record; " +
			"read it and write with its revision",
		store.ReasonMissing: "Service files:default/web: not stored, and the write expects revision 5, " +
			"uid 01000000000000000000000000000000; it was deleted, or never created: " +
			"create it with no revision and no uid, or let it be",
		store.ReasonOtherLife: "Service files:default/web: has uid 02000000000000000000000000000000, " +
			"and the write expects 01000000000000000000000000000000; it was deleted and created again: " +
			"read it again and decide anew",
		store.ReasonSuperseded: "Service files:default/web: is at revision 7, and the write expects 5; " +
			"read it again and apply the change to what is stored",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestConfigNamesTheFieldThatIsWrong(t *testing.T) {
	t.Parallel()
	if err := (store.Config{}).Validate(); err != nil {
		t.Errorf("the zero Config: %v", err)
	}
	err := store.Config{History: -1}.Validate()
	if want := "history: -1 is negative; give a number of events, or 0 for 100000"; err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}
