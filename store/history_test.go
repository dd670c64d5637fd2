package store

import (
	"fmt"
	"runtime"
	"strings"
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
// wherever it stands: before, at or behind the commits in question. The oldest commit of the
// history also has the record that it replaced.
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
	for i, r := range written[:15] {
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

// Neither the number of events kept nor their bytes ever exceed the bound, and
// they are what the chain holds.
func TestTheHistoryIsBounded(t *testing.T) {
	t.Parallel()
	const most = 10_000
	h := newHistory(newPosition(model.At{}), Config{History: 10, HistoryBytes: most})
	full := 0
	for i := range 400 {
		changes := make([]change, i*7%13)
		for k := range changes {
			r := &model.Record{Spec: model.Opaque{Content: strings.Repeat("x", i*31%3000)}}
			if changes[k].after = r; i%3 == 0 {
				changes[k] = change{before: r}
			}
		}
		h.append(&step{revision: uint64(i), after: newPosition(model.At{})}, changes)
		kept, content := 0, 0
		for at := h.oldest.Load(); at != h.newest; at = at.next.Load().after {
			for _, n := range at.next.Load().notice {
				kept++
				content += len(n.about.Spec.(model.Opaque).Content)
			}
		}
		if kept != h.events || kept > 10 || content > h.bytes || h.bytes > most || (kept == 0) != (h.bytes == 0) {
			t.Fatalf("after %d steps the history has %d events with %d bytes and says %d and %d, of at most 10 and %d", i+1, kept, content, h.events, h.bytes, most)
		}
		if full = max(full, h.bytes); kept == 10 {
			full = most
		}
	}
	if full < most/2 {
		t.Errorf("no more than %d bytes were ever kept, of %d", full, most)
	}
}
