package app

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// The places of panics that the process survived, beside the places within an engine.
const (
	// panicMerge is in the merge of records. The last snapshot is served meanwhile.
	panicMerge = "merge"
	// panicPublish is in an output that takes a snapshot. Its previous state stays published.
	panicPublish = "publish"
)

// part is a part of the process that may panic.
type part struct{ output, where string }

// faults are the panics that the process survived.
type faults struct {
	log *slog.Logger

	mu    sync.Mutex
	parts map[part]*admin.Fault
}

func newFaults(log *slog.Logger) *faults { return &faults{log: log, parts: map[part]*admin.Fault{}} }

// survived counts a panic. It is logged if the part worked before, or if it is a new one.
func (f *faults) survived(at part, value any, stack []byte) {
	if f.count(at, fmt.Sprint(value)) {
		f.log.Error("a panic was survived; please report it", "output", at.output, "where", at.where, "err", value, "stack", string(stack))
	}
}

func (f *faults) count(at part, text string) (another bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.parts[at]
	if one == nil {
		one = &admin.Fault{Output: at.output, Panic: world.Panic{Where: at.where}}
		f.parts[at] = one
	}
	another = one.Since.IsZero() || one.Text != text
	one.Count, one.Last, one.Text = one.Count+1, time.Now(), text
	if one.Since.IsZero() {
		one.Since = one.Last
	}
	return another
}

// over records that a part works again.
func (f *faults) over(at part) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one := f.parts[at]; one != nil {
		one.Since = time.Time{}
	}
}

// all lists the parts that panicked.
func (f *faults) all() (list []admin.Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	inOrder := func(a, b part) int { return cmp.Or(cmp.Compare(a.output, b.output), cmp.Compare(a.where, b.where)) }
	for _, at := range slices.SortedFunc(maps.Keys(f.parts), inOrder) {
		list = append(list, *f.parts[at])
	}
	return list
}

// lasting returns the panic because of which a part does not work now; empty if it works.
func (f *faults) lasting(at part) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one := f.parts[at]; one != nil && !one.Since.IsZero() {
		return one.Text
	}
	return ""
}

// delivery hands one output the snapshots of its branch.
type delivery struct {
	output.Output
	kind string
	// behind reports that the output panicked in the last snapshot. missed is the changes that
	// it has not taken.
	behind bool
	missed catalog.Change
}

// publish passes on a snapshot. An output that panics is retried once, and again with the
// next snapshot. It then gets all changes since the last snapshot that it took.
func (d *delivery) publish(s *catalog.Snapshot, change catalog.Change, complete bool, f *faults) {
	if d.behind {
		waited := change.Waited
		change = d.missed.Then(change)
		change.Waited = waited
	}
	at := part{d.kind, panicPublish}
	for range 2 {
		if d.attempt(s, change, complete, f, at) {
			d.behind, d.missed = false, catalog.Change{}
			f.over(at)
			return
		}
	}
	d.behind, d.missed = true, catalog.Change{}.Then(change) // a copy: the output may still look at this one
}

func (d *delivery) attempt(s *catalog.Snapshot, change catalog.Change, complete bool, f *faults, at part) (ok bool) {
	defer func() {
		if value := recover(); value != nil {
			f.survived(at, value, debug.Stack())
			ok = false
		}
	}()
	d.Publish(s, change, complete)
	return true
}
