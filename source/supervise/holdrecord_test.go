package supervise_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
)

// What is held changes no record: it is said in one, in the commit of the listing.
func TestDropAndReturnAreOneRecordEach(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 30, 5)...)
		b.list()
		b.standing(150, 180)
		b.wrote("create Hold /*")
		b.list(fleet(0, 30, 5)...)
		b.standing(150, 0)
		b.wrote("delete Hold /*")

		b.list(fleet(29, 31, 5)...)
		b.wrote("create Hold /*", "create Service ns/s30",
			"create Endpoint ns/s30/10.0.0.0", "create Endpoint ns/s30/10.0.0.1", "create Endpoint ns/s30/10.0.0.2",
			"create Endpoint ns/s30/10.0.0.3", "create Endpoint ns/s30/10.0.0.4")
		if len(b.store.commits) != 4 {
			t.Errorf("%d commits for 4 listings", len(b.store.commits))
		}
	})
}

func TestEachCauseHasItsRecord(t *testing.T) {
	supervised(t, func(b *bridge) {
		before := append(fleet(0, 100, 5), service("a", "fa", crowd(12)...), service("b", "fb", crowd(15)...))
		b.list(before...)
		b.list(append(fleet(0, 100, 5), service("b", "fb"))...)
		b.wrote("create Hold ns/Service/a", "create Hold ns/Service/b")
		for name, n := range map[string]int{"a": 12, "b": 15} {
			hold, _ := b.heldFor(model.KindEndpoint, name+"/10.0.0.1")
			if hold.Cause != stored(model.KindService, name) || hold.Items.Len() != 1 {
				t.Errorf("held for %+v", hold)
			}
			mentions(t, hold.Reason, fmt.Sprintf("all %d endpoints of Service ns/%s", n, name))
		}
		b.list(append(fleet(0, 100, 5), service("b", "fb", "10.0.0.1"))...)
		b.wrote("update Hold ns/Service/b")
		b.standing(527, 13+14)
	})
}

// The decision about a baseline that is known is in the commit of the listing.
func TestListingAndJudgementAreOneCommit(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.lacks(40)
		b.list(fleet(0, 1, 1)...)
		b.keeps(40, 1)
		b.wrote("create Source /reg", "create Service ns/s00", "create Endpoint ns/s00/10.0.0.0")
		b.list(service("far", "f", far(40)...))
		b.keeps(0, 0)
		if len(b.store.commits) != 2 {
			t.Errorf("%d commits for 2 listings", len(b.store.commits))
		}
	})
}

// A decision that the store did not take is taken anew.
func TestJudgementOutlivesAStoreThatIsAway(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.lacks(40)
		b.store.reject = 4
		if err := b.do(func(ctx context.Context, sink source.Sink) error { return sink.Replace(ctx, model.Listing{}) }); err == nil {
			t.Error("a listing was taken by a store that is away")
		}
		b.keeps(0, 0)
		b.list()
		b.keeps(40, 1)
	})
}

// Any store takes what says that very much is held, and one record of it that
// changes does not cost all others again.
func TestWhatIsHeldIsSaidInRecordsOfABoundedSize(t *testing.T) {
	const most = 512 << 10 // bytes; etcd takes three times that
	many := func(services, endpoints int) (objects []model.Object) {
		for i := range services {
			objects = append(objects, service(fmt.Sprintf("a-service-with-a-name-of-some-length-%05d", i), "f", crowd(endpoints)...))
		}
		return objects
	}
	for name, c := range map[string]struct {
		before, after, back []model.Object
		held                int
	}{
		"services":         {many(10_000, 1), many(3_000, 1), many(3_001, 1), 14_000},
		"of one service":   {many(1, 30_000), many(1, 3), many(1, 4), 29_997},
		"all but one":      {many(10_000, 1), many(1, 1), many(2, 1), 19_998},
		"nearly all again": {many(10_000, 1), many(1, 1), many(9_990, 1), 19_998},
	} {
		t.Run(name, func(t *testing.T) {
			supervised(t, func(b *bridge) {
				b.list(c.before...)
				b.list(c.after...)
				endpoints := b.Status().Endpoints
				b.standing(endpoints, c.held)
				if n := b.holdRecords(most); n < 2 || n > 100 {
					t.Errorf("%d records say what is held", n)
				}
				b.list(c.back...)
				back := countOf(c.back) - countOf(c.after)
				b.standing(endpoints, c.held-back)
				if n := len(b.store.commits[len(b.store.commits)-1].Writes); back < 3 && n > 2 {
					t.Errorf("%d records are written when %d are back", n, back)
				}
				if n := b.holdRecords(most); c.held-back < 100 && n != 1 {
					t.Errorf("%d records say what is held of few", n)
				}
			})
		})
	}
}

func countOf(objects []model.Object) (n int) {
	for _, o := range objects {
		n += 1 + len(o.Owned)
	}
	return n
}

// holdRecords counts the records that say what is held, none of which may be large.
func (b *bridge) holdRecords(most int) (n int) {
	b.t.Helper()
	for rec := range b.store.List(model.Filter{Kind: model.KindHold}) {
		text, err := model.Encode(rec)
		if err != nil || len(text) > most {
			b.t.Errorf("%s has %d bytes (%v)", rec.Ref, len(text), err)
		}
		n++
	}
	return n
}

// A new process knows for what everything is held, and since when.
func TestCausesSurviveARestart(t *testing.T) {
	supervised(t, func(b *bridge) {
		before := append(fleet(0, 100, 5), service("a", "fa", crowd(12)...))
		b.list(before...)
		b.list(fleet(0, 100, 5)...)
		want, _ := b.heldFor(model.KindService, "a")
		time.Sleep(time.Hour)
		next := connect(b.t, b.store)
		next.standing(512, 13)
		next.list(append(fleet(0, 100, 5), service("a", "fa", "10.0.0.3"))...)
		next.standing(512, 11)
		got, _ := next.heldFor(model.KindEndpoint, "a/10.0.0.1")
		if got.Cause != want.Cause || !got.Since.Equal(want.Since) || got.Reason != want.Reason {
			t.Errorf("held for %+v, want %+v", got, want)
		}
		mentions(t, next.Status().Reason, "11 of 12 endpoints")
	})
}

// The folder was written by a build that marked each record it held: twelve
// endpoints of one service in the snapshot, most of the others in the journal.
func TestWhatAnOlderBuildHeldStaysHeld(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/held-by-marks")); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		disk := openDisk(t, dir)
		l := newLedger()
		l.memory = disk.Store()
		b := connect(t, l)
		b.standing(32, 31)
		if len(l.commits) != 1 {
			t.Errorf("applied in %d commits", len(l.commits))
		}
		hold, _ := b.heldFor(model.KindService, "big")
		mentions(t, hold.Reason, "27 endpoints of its source")
		if want := time.Date(2026, 11, 22, 3, 8, 17, 0, time.UTC); hold.Since.Sub(want).Abs() > 2*time.Second {
			t.Errorf("held since %s, want about %s", hold.Since, want)
		}
		saved := saving(t, disk)
		for range 3 {
			b.standing(32, 31)
			b.list(fleet(3, 4, 5)...)
			time.Sleep(30 * time.Second)
		}
		b.standing(5, 0)
		saved()
	})
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		disk := openDisk(t, dir)
		l.memory = disk.Store()
		connect(t, l).standing(5, 0)
		disk.Close()
	})
}

// An operator may release it before the source is read.
func TestWhatAnOlderBuildHeldCanBeReleased(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/held-by-marks")); err != nil {
		t.Fatal(err)
	}
	disk := openDisk(t, dir)
	defer disk.Close()
	s := supervise.New("reg", nil, disk.Store(), supervise.Config{})
	if n, err := s.Release(t.Context()); n != 31 || err != nil {
		t.Errorf("released %d: %v", n, err)
	}
	var left []string
	for rec := range disk.Store().List(model.Filter{}) {
		left = append(left, title(rec.Ref))
	}
	want := []string{
		"Endpoint ns/s03/10.0.0.0", "Endpoint ns/s03/10.0.0.1", "Endpoint ns/s03/10.0.0.2", "Endpoint ns/s03/10.0.0.3",
		"Endpoint ns/s03/10.0.0.4", "Service ns/s03", "Source /reg",
	}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

func openDisk(t *testing.T, dir string) *store.Disk {
	t.Helper()
	disk, err := store.OpenDisk(store.DiskConfig{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if damage := disk.Restored().Damage; damage != nil {
		t.Fatal(damage)
	}
	return disk
}

// saving saves what is committed until the function it returns is called.
func saving(t *testing.T, disk *store.Disk) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- disk.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// What somebody else has deleted is neither held nor counted.
func TestWhatIsDeletedByOthersIsNotHeld(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 5, 5)...)
		b.list(fleet(4, 5, 5)...)
		b.standing(25, 24)
		rec, _ := b.store.memory.Get(stored(model.KindEndpoint, "s00/10.0.0.0"))
		if _, err := b.store.memory.Commit(b.t.Context(), model.Commit{Writes: []model.Write{{Record: rec, Delete: true}}}); err != nil {
			b.t.Fatal(err)
		}
		b.list(fleet(4, 5, 5)...)
		b.standing(24, 23)
	})
}
