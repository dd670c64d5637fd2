package feature_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/store"
)

// TestClockMayJumpBetweenRuns saves the last known good under a clock that is
// decades off, with a drop held in it. Nothing is released early or late,
// nothing is taken away, and no age is negative. Within a run the clock that
// counts cannot jump.
func TestClockMayJumpBetweenRuns(t *testing.T) {
	t.Parallel()
	for name, offset := range map[string]time.Duration{"forth": 0, "back": 50 * 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, b, dir := newRegistry(t, "files"), startBackends(t, "one", "two"), t.TempDir()
			many := endpoints(b[0], b[1])
			for i := range 10 {
				many = append(many, fmt.Sprintf("{address: 127.0.1.%d}", i+1))
			}
			files.Write("shop.yaml", service{Host: ratings, Endpoints: many}, service{Host: reviews, Endpoints: endpoints(b[0])})
			hold := "  hold: {min: 5, for: 1h}\n  file:"
			configured := func() string { return strings.Replace(saving(loopback, dir, files), "  file:", hold, 1) }
			before := startWith(t, configured(), files)
			dial(t, before, reviews+":80", "shop").AwaitAnswers("one")
			files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])})
			before.AwaitSource("files", "held", "12 of 13 endpoints")
			before.Stop()
			saveAt(t, dir, offset)

			after := startWith(t, configured(), files)
			after.AwaitSource("files", "held", "1 so far")
			s := after.Source("files")
			if strings.HasPrefix(s.Age, "-") || s.Endpoints != 13 || s.Held == 0 {
				t.Errorf("after the jump the source is %+v", s)
			}
			for _, r := range after.AwaitService(ratings, whatever).Records {
				if r.Held == "" || strings.HasPrefix(r.Age, "-") {
					t.Errorf("after the jump a record is %+v", r)
				}
			}
			dial(t, after, ratings+":80", "shop").AwaitAnswers("one", "two")
			files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[1])})
			dial(t, after, reviews+":80", "shop").AwaitAnswers("two")
		})
	}
}

// saveAt saves what is in a folder once more by a clock that begins in the year
// 2000, some time later, as if it had all happened then.
func saveAt(t *testing.T, dir string, later time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(later)
		disk, err := store.OpenDisk(store.DiskConfig{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		ended := make(chan error, 1)
		go func() { ended <- disk.Run(ctx) }()
		var writes []model.Write
		for r := range disk.Store().List(model.Filter{Kind: model.KindHold}) {
			hold, _ := r.Spec.(model.Hold)
			hold.Since = time.Now().UTC()
			r.Spec = hold
			writes = append(writes, model.Write{Record: r})
		}
		if len(writes) == 0 {
			t.Error("nothing was held")
		}
		if _, err := disk.Store().Commit(t.Context(), model.Commit{Writes: writes}); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
