package file_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/file"
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
	"github.com/isthmus-mesh/isthmus/test/testkit/listing"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// mirrored is a folder of twelve files that a supervisor mirrors into a store.
type mirrored struct {
	*supervise.Supervisor
	t     *testing.T
	dir   string // the files are in its folder "shop"
	aside string // a folder elsewhere
	store *store.Memory
}

func mirror(t *testing.T, span time.Duration, config func(path string) file.Config) *mirrored {
	t.Helper()
	m := &mirrored{t: t, dir: t.TempDir(), aside: filepath.Join(t.TempDir(), "shop"), store: store.NewMemory(store.Config{})}
	for i := range 12 {
		write(t, m.dir, fmt.Sprintf("shop/%02d.yaml", i), entry(fmt.Sprintf("s%02d", i), fmt.Sprintf("s%02d.example", i)))
	}
	src := file.New(config(m.dir), slog.New(slog.DiscardHandler))
	m.Supervisor = supervise.New("files", src, m.store, supervise.Config{
		Hold: hold.Config{Share: 0.5, Min: 10, For: span},
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	m.until("is listed", func(st source.Status) bool { return st.State == source.StateLive && st.Endpoints == 12 })
	return m
}

// until waits for the status to be as wanted, and returns it.
func (m *mirrored) until(what string, wanted func(source.Status) bool) source.Status {
	m.t.Helper()
	var st source.Status
	until.NoError(m.t, 2*time.Millisecond, what, func() error {
		if st = m.Status(); !wanted(st) {
			return fmt.Errorf("it is %+v", st)
		}
		return nil
	})
	return st
}

// stored counts the services and endpoints that are stored.
func (m *mirrored) stored() (n int) {
	for range m.store.List(model.Filter{Kind: model.KindService}) {
		n++
	}
	for range m.store.List(model.Filter{Kind: model.KindEndpoint}) {
		n++
	}
	return n
}

func held(st source.Status) bool { return st.State == source.StateHeld && st.Held == 24 }

func TestFolderEmptiedAtOnceIsHeld(t *testing.T) {
	t.Parallel()
	m := mirror(t, time.Hour, patient)
	rename(t, "", filepath.Join(m.dir, "shop"), m.aside)
	m.until("is held", held)
	if n := m.stored(); n != 24 {
		t.Errorf("%d records are stored, want all 24", n)
	}
	rename(t, "", m.aside, filepath.Join(m.dir, "shop"))
	m.until("is live again", func(st source.Status) bool { return st.State == source.StateLive && st.Held == 0 })
	if n := m.stored(); n != 24 {
		t.Errorf("%d records are stored, want all 24", n)
	}
}

// An unchanged folder is listed again when that is asked for, so that a drop
// which lasts is taken in the end.
func TestFolderThatStaysEmptyIsReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // in which no event of the system comes
		m := mirror(t, time.Minute, func(path string) file.Config {
			return file.Config{Path: path}.Pace(time.Millisecond, 0, 0, 10*time.Millisecond).Gone(time.Millisecond).Unwatched()
		})
		rename(t, "", filepath.Join(m.dir, "shop"), m.aside)
		since := m.until("is held", held).Since
		released := m.until("is released", func(st source.Status) bool { return st.State == source.StateLive }).Since
		if n, after := m.stored(), released.Sub(since); n != 0 || after < time.Minute {
			t.Errorf("%d records are stored after %s", n, after)
		}
	})
}

// Files that are removed one by one are gone, until the losses add up: then those that
// went last come back.
func TestFilesRemovedOneByOneAddUp(t *testing.T) {
	t.Parallel()
	m := mirror(t, time.Hour, patient)
	for i := range 9 {
		rename(t, "", filepath.Join(m.dir, "shop", fmt.Sprintf("%02d.yaml", i)), m.aside)
		m.until("follows", func(st source.Status) bool { return st.Endpoints == 11-i && st.Held == 0 })
	}
	rename(t, "", filepath.Join(m.dir, "shop", "09.yaml"), m.aside)
	m.until("is held", func(st source.Status) bool { return st.State == source.StateHeld && st.Held == 20 })
	if n := m.stored(); n != 24 {
		t.Errorf("%d records are stored, want 24", n)
	}
}

func TestRelistSendsEverything(t *testing.T) {
	t.Parallel()
	r := follow(t, map[string]string{"a.yaml": entry("a", "a.example"), "b.yaml": entry("b", "b.example")})
	for range 3 {
		r.relist <- time.Now()
		r.full()
		r.stored("a@a.yaml", "b@b.yaml")
	}
	r.remove("b.yaml")
	if l := r.next(); !slices.Equal(l.Places, []string{"b.yaml"}) || l.Removed != nil {
		t.Errorf("a file that is gone is not simply missing: removed %v\n%s", l.Removed, listing.Dump(l))
	}
}
