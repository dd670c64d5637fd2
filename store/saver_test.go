package store

import (
	"context"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A commit is on disk within a second, however many follow it, and while new
// snapshots are written. The clock is the bubble's: this is about what saving
// waits for, not about how fast a disk is.
func TestACommitIsSavedWithinASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, t.TempDir(), func(d *Disk) {
			d.tuning = defaultTuning()
			d.tuning.minJournal = 10 << 10
		})
		defer k.end()
		made := map[uint64]time.Time{}
		saved := uint64(0)
		for i := range 60_000 / 20 {
			revision := say(t, k.Store(), map[string]string{"a": strings.Repeat("x", 1+i%100)})
			made[revision] = time.Now()
			time.Sleep(20 * time.Millisecond)
			s := k.Saving()
			for saved < s.Saved.Revision {
				saved++
				delete(made, saved)
			}
			if oldest, ok := made[saved+1]; ok && time.Since(oldest) > time.Second || s.Lag(time.Now()) > time.Second {
				t.Fatalf("revision %d is not saved after %s, the lag is said to be %s: %+v", saved+1, time.Since(oldest), s.Lag(time.Now()), s)
			}
		}
		time.Sleep(time.Second)
		if s := k.Saving(); s.Saved != k.Store().At() || s.Lag(time.Now()) != 0 || s.Failures > 0 {
			t.Errorf("a second after the last commit: %+v, and the store is at %+v", s, k.Store().At())
		}
	})
}

// While nothing happens the time is noted, so that the age of what is restored
// is that of the process and not that of the last change.
func TestAnIdleStoreIsKnownToBeCurrent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		k := keep(t, dir, nil)
		say(t, k.Store(), map[string]string{"a": "1"})
		time.Sleep(24 * time.Hour)
		k.end()
		again := keep(t, dir, nil)
		defer again.end()
		if age := time.Since(again.Restored().Saved); age > 2*time.Minute {
			t.Errorf("what is restored is said to be %s old", age)
		}
	})
}

// quota is a disk that has room for so many bytes.
type quota struct {
	diskFiles
	mu   sync.Mutex
	left int
}

func (q *quota) set(left int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.left = left
}

func (q *quota) create(path string) (file, error) {
	f, err := q.diskFiles.create(path)
	return &limited{f, q}, err
}

type limited struct {
	file
	quota *quota
}

// Write writes what there is room for, as a disk does.
func (l *limited) Write(b []byte) (int, error) {
	l.quota.mu.Lock()
	defer l.quota.mu.Unlock()
	room := min(len(b), l.quota.left)
	n, err := l.file.Write(b[:room])
	l.quota.left -= n
	if err == nil && n < len(b) {
		err = syscall.ENOSPC
	}
	return n, err
}

// A full disk is reported and stops nobody. What is on it stays good; when
// there is room again, everything is saved.
func TestAFullDiskIsReportedAndSurvived(t *testing.T) {
	t.Parallel()
	for _, room := range []int{0, 10, 100, 700, 5000} {
		synctest.Test(t, func(t *testing.T) {
			dir, disk := t.TempDir(), &quota{left: 1 << 20}
			tune := func(d *Disk) {
				d.files = disk
				d.tuning.minJournal = 2000
			}
			k := keep(t, dir, tune)
			say(t, k.Store(), map[string]string{"a": "good"})
			time.Sleep(time.Second)
			disk.set(room)
			for range 100 {
				say(t, k.Store(), map[string]string{"b": time.Now().String(), "c": strings.Repeat("x", 100)})
				time.Sleep(time.Second)
			}
			s := k.Saving()
			if s.Err == nil || !strings.Contains(s.Err.Error(), "space") || s.Failures < 2 || s.Lag(time.Now()) < 30*time.Second {
				t.Errorf("with room for %d bytes saving says %+v, lag %s", room, s, s.Lag(time.Now()))
			}
			disk.set(1 << 20)
			time.Sleep(time.Minute)
			if s := k.Saving(); s.Err != nil || s.Saved != k.Store().At() || s.Lag(time.Now()) != 0 {
				t.Errorf("when there is room again saving says %+v", s)
			}
			want := contentOf(k.Store())
			k.end()
			again := keep(t, dir, nil)
			defer again.end()
			if diff := cmp.Diff(want, contentOf(again.Store()), cmp.Comparer(sameState)); diff != "" {
				t.Errorf("restored (-want +got):\n%s", diff)
			}
		})
	}
}

// What was saved before the disk was full is what a restart finds.
func TestAFullDiskKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir, disk := t.TempDir(), &quota{left: 1 << 20}
		k := keep(t, dir, func(d *Disk) { d.files = disk })
		say(t, k.Store(), map[string]string{"a": "good"})
		time.Sleep(time.Second)
		want := contentOf(k.Store())
		disk.set(0)
		say(t, k.Store(), map[string]string{"a": "lost"})
		time.Sleep(time.Minute)
		if err := k.stop(); err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("stopped with commits that are not saved: error %v", err)
		}
		again := keep(t, dir, nil)
		defer again.end()
		if diff := cmp.Diff(want, contentOf(again.Store()), cmp.Comparer(sameState)); diff != "" {
			t.Errorf("restored (-want +got):\n%s", diff)
		}
	})
}

// A folder that is on a full disk when the process starts is no reason not to start.
func TestAStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir, disk := t.TempDir(), &quota{}
		k := keep(t, dir, func(d *Disk) { d.files = disk })
		say(t, k.Store(), map[string]string{"a": "1"})
		time.Sleep(time.Minute)
		if s := k.Saving(); s.Err == nil || s.Lag(time.Now()) == 0 {
			t.Errorf("saving says %+v", s)
		}
		disk.set(1 << 20)
		time.Sleep(time.Minute)
		k.end()
		again := keep(t, dir, nil)
		defer again.end()
		if again.Restored().Records != 1 {
			t.Errorf("restored %+v, want one record", again.Restored())
		}
	})
}

// What is committed until the stop is saved, however much that is.
func TestAStopSavesEverything(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := OpenDisk(DiskConfig{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- d.Run(ctx) }()
	for i := range 500 {
		say(t, d.Store(), map[string]string{"a": strings.Repeat("x", i+1)})
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	again := keep(t, dir, nil)
	defer again.end()
	if again.Store().Revision() != 500 {
		t.Errorf("restored to revision %d, want 500", again.Store().Revision())
	}
}
