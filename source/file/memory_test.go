package file_test

import (
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/budget"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/file"
	"github.com/isthmus-mesh/isthmus/test/testkit/listing"
)

// A folder of files that would take gigabytes is rejected file by file, with its size, the
// bound and the remedy; what is beside them in the folder, and in a file, is read.
func TestFilesThatTakeTooMuchMemoryAreRejectedByName(t *testing.T) {
	dir := t.TempDir()
	list := func(n int) string {
		return entry("bomb", "bomb.example") + "---\nl: &l [" + strings.Repeat("x,", 100) + "]\nx:\n" + strings.Repeat("- *l\n", n)
	}
	write(t, dir, "good.yaml", entry("good", "good.example"))
	write(t, dir, "aliases.yaml", list(450_000))
	write(t, dir, "items.yaml", strings.Repeat("- a\n", 6_000_000))
	config := file.Config{Path: dir}.With(source.Env{Memory: budget.New(64 << 20)})
	most := peakHeap(t, func() {
		r := launch(t, dir, config)
		l := r.next()
		if len(l.Objects) != 2 || len(l.Rejected) != 2 {
			t.Fatalf("listed:\n%s", listing.Dump(l))
		}
		for i, where := range []string{"aliases.yaml:", "items.yaml:1"} {
			f := l.Rejected[i]
			if !strings.HasPrefix(f.Where, where) || !strings.Contains(f.Reason, "MiB are allowed: split it") {
				t.Errorf("rejected is %+v", f)
			}
		}
	})
	// 64 MiB are for reading; as much may be garbage, and the texts are 26 MB.
	if most > 200<<20 {
		t.Errorf("the heap had %d MiB", most>>20)
	}
}

// peakHeap is by how much the heap grew meanwhile.
func peakHeap(t *testing.T, do func()) (most uint64) {
	t.Helper()
	heap := func() uint64 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	before, done, ended := heap(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				if now := heap(); now > before {
					most = max(most, now-before)
				}
			}
		}
	}()
	do()
	close(done)
	<-ended
	return most
}
