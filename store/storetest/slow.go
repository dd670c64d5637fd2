package storetest

import (
	"runtime"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
)

// slowWatcher leaves a watch unread while far more is written than the store may keep
// for it. It reads another watch along. It measures memory, so nothing may run beside it.
func slowWatcher(t *testing.T, s Store) {
	t.Helper()
	const (
		keys   = 32
		size   = 32 << 10
		rounds = 64 // 64 MiB in 2048 events; the history is 8 MiB of it
		excess = 24 << 20
	)
	slow, fast := watch(t, s, model.Filter{}).prime(), watch(t, s, model.Filter{}).prime()
	before := liveBytes()
	var last uint64
	for round := range rounds {
		records := make([]model.Record, keys)
		for i := range records {
			content := strings.Repeat(string(rune('a'+round%26)), size)
			records[i] = model.Record{Ref: ref(kindNote, "files", "", nth(i).Name), Spec: model.Opaque{Content: content}}
		}
		last = put(t, s, records...)
		if fast.read(); fast.revision != last {
			t.Fatalf("a watcher that keeps up is at revision %d, and the store at %d", fast.revision, last)
		}
	}
	if grown := liveBytes() - before; grown > excess {
		t.Errorf("a slow watcher costs %d MiB", grown>>20)
	}
	slow.readTo(last)
	mustEqual(t, "what the slow watcher ends with", slow.held, fast.held)
	if slow.resets != 1 || slow.snapshots != 2 {
		t.Errorf("the slow watcher saw %d resets and %d snapshots, want 1 and 2", slow.resets, slow.snapshots)
	}
	if fast.resets != 0 {
		t.Errorf("a watcher that keeps up was reset %d times for another's sake", fast.resets)
	}
	live := put(t, s, saying(web, 1))
	slow.read()
	fast.read()
	if slow.revision != live || fast.revision != live {
		t.Errorf("after the reset the watchers are at revisions %d and %d, want %d", slow.revision, fast.revision, live)
	}
}

// slowWatcherOfMuch leaves a watch unread while few but large records are written: no
// more events than may be kept, and more bytes.
func slowWatcherOfMuch(t *testing.T, s Store) {
	t.Helper()
	const (
		rounds = History / 2
		size   = 4 * HistoryBytes / History // twice as much in all
	)
	slow, fast := watch(t, s, model.Filter{}).prime(), watch(t, s, model.Filter{}).prime()
	var last uint64
	for round := range rounds {
		content := strings.Repeat(string(rune('a'+round%26)), size)
		last = put(t, s, model.Record{Ref: ref(kindNote, "files", "", nth(round%3).Name), Spec: model.Opaque{Content: content}})
		fast.read()
	}
	slow.readTo(last)
	mustEqual(t, "what the slow watcher ends with", slow.held, fast.held)
	if slow.resets != 1 || slow.snapshots != 2 || fast.resets != 0 {
		t.Errorf("the slow watcher saw %d resets and %d snapshots, want 1 and 2; the other one %d resets", slow.resets, slow.snapshots, fast.resets)
	}
}

// liveBytes returns the size of the live heap after a collection.
func liveBytes() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
