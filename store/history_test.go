package store

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"weak"

	"github.com/isthmus-mesh/isthmus/model"
)

// write commits a record of that name, whatever is stored of it.
func write(t *testing.T, m *Memory, name string, n int) *model.Record {
	t.Helper()
	r := model.Record{Ref: model.Ref{Kind: "Note", Key: model.Key{Source: "files", Name: name}}}
	if stored, ok := m.Get(r.Ref); ok {
		r.Revision = stored.Revision
	}
	r.Spec = model.Opaque{Content: fmt.Sprint(n)}
	if _, err := m.Commit(t.Context(), model.Commit{Writes: []model.Write{{Record: r}}}); err != nil {
		t.Fatal(err)
	}
	stored, _ := m.state.Load().records.Get(r.Ref)
	return stored
}

// A watcher that stands still keeps nothing that the history has forgotten,
// wherever it stands: before, at or behind the commits in question.
func TestASlowWatcherKeepsNothing(t *testing.T) {
	t.Parallel()
	m := NewMemory(Config{History: 4})
	var standing []*position
	var written []weak.Pointer[model.Record]
	for i := range 20 {
		standing = append(standing, m.state.Load().position)
		written = append(written, weak.Make(write(t, m, "web", i)))
	}
	runtime.GC()
	for i, r := range written[:16] {
		if r.Value() != nil {
			t.Errorf("version %d of 20 is still held; the history is 4", i+1)
		}
	}
	for i, at := range standing[16:] {
		if at.next.Load().forgotten() {
			t.Errorf("version %d of 20 is forgotten; the history is 4", i+17)
		}
	}
	runtime.KeepAlive(standing)
	runtime.KeepAlive(m)
}

// A watch that has read its snapshot lets go of it, though it waits on.
func TestAWatchLetsGoOfItsSnapshot(t *testing.T) {
	t.Parallel()
	m := NewMemory(Config{History: 1})
	old := weak.Make(write(t, m, "web", 0))
	read := 0
	for range m.Watch(t.Context(), model.Filter{}) {
		if read++; read == 3 { // the snapshot and two commits
			runtime.GC()
			if old.Value() != nil {
				t.Error("the version of the snapshot is still held")
			}
			break
		}
		write(t, m, "web", read)
	}
}

// Whoever can see a commit can read it: the state is published first.
func TestWhatIsPublishedIsAlreadyStored(t *testing.T) {
	t.Parallel()
	m := NewMemory(Config{})
	at := m.state.Load().position
	const commits = 3000
	early := 0
	var reader sync.WaitGroup
	reader.Go(func() {
		for range commits {
			next := at.next.Load()
			for ; next == nil; next = at.next.Load() { // does not wait to be woken
				runtime.Gosched()
			}
			if m.Revision() < next.revision {
				early++
			}
			at = next.after
		}
	})
	for i := range commits {
		write(t, m, "web", i)
	}
	reader.Wait()
	if early > 0 {
		t.Errorf("%d of %d commits were published before they were stored", early, commits)
	}
}

// The number of events kept never exceeds the bound, and is what the chain holds.
func TestTheHistoryIsBounded(t *testing.T) {
	t.Parallel()
	h := newHistory(newPosition(model.At{}), 10)
	for i := range 200 {
		changes := make([]change, i*7%13)
		for k := range changes {
			changes[k].after = &model.Record{}
		}
		h.append(&step{revision: uint64(i), after: newPosition(model.At{})}, changes)
		kept := 0
		for at := h.oldest.Load(); at != h.newest; at = at.next.Load().after {
			kept += len(at.next.Load().notice)
		}
		if kept != h.events || kept > 10 {
			t.Fatalf("after %d steps the history has %d events and says %d, of at most 10", i+1, kept, h.events)
		}
	}
}
