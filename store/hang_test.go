package store

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// hanging is a disk of which one kind of operation hangs until it is freed.
type hanging struct {
	diskFiles
	kind string
	free atomic.Pointer[chan struct{}] // nil if nothing hangs
}

func (h *hanging) hang() (free func()) {
	until := make(chan struct{})
	h.free.Store(&until)
	return sync.OnceFunc(func() { h.free.Store(nil); close(until) })
}

func (h *hanging) wait(kind string) {
	if until := h.free.Load(); until != nil && kind == h.kind {
		<-*until
	}
}

func (h *hanging) create(path string) (file, error) {
	h.wait("create")
	f, err := h.diskFiles.create(path)
	return &hangingFile{f, h}, err
}

func (h *hanging) rename(from, to string) error {
	h.wait("rename")
	return h.diskFiles.rename(from, to)
}

func (h *hanging) sync(path string) error {
	h.wait("sync of the folder")
	return h.diskFiles.sync(path)
}

type hangingFile struct {
	file
	on *hanging
}

func (f *hangingFile) Write(b []byte) (int, error) {
	f.on.wait("write")
	return f.file.Write(b)
}

func (f *hangingFile) Sync() error {
	f.on.wait("sync")
	return f.file.Sync()
}

// logText is a log to look into.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logText) log() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// A disk that hangs, whatever it hangs in, delays no commit. It is reported while
// it hangs, costs no more than the history, and has everything afterwards.
func TestADiskThatHangsDelaysNobody(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"create", "write", "sync", "rename", "sync of the folder"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				dir, disk, log := t.TempDir(), &hanging{kind: kind}, &logText{}
				d, err := openDisk(DiskConfig{Dir: dir, Store: Config{History: 50}, Log: log.log()}, defaultTuning(), disk)
				if err != nil {
					t.Fatal(err)
				}
				free := func() {}
				defer func() { free() }()
				if kind == "rename" {
					free = disk.hang() // of the first snapshot
				}
				k := runDisk(t, d)
				time.Sleep(time.Second)
				if kind != "rename" {
					free = disk.hang()
				}
				began := time.Now()
				first := say(t, d.Store(), map[string]string{"a": "1"})
				time.Sleep(30 * time.Second)
				s, now := d.Saving(), time.Now()
				if lag := s.Lag(now); lag < 29*time.Second || s.Saved.Revision >= first {
					t.Errorf("a disk that hangs for 30 s is reported with a lag of %s, revision %d", lag, s.Saved.Revision)
				}
				if lag, synced := s.WriteLag(now), strings.HasPrefix(kind, "sync"); synced != (lag == 0) {
					t.Errorf("what was not handed over is said to be %s old", lag)
				}
				if text := log.String(); !strings.Contains(text, "the disk is slow or hangs") {
					t.Errorf("the log does not say so: %s", text)
				}
				for range 200 { // more than the history has
					say(t, d.Store(), map[string]string{"a": time.Now().String(), "b": "x"})
					time.Sleep(time.Second)
				}
				if took := time.Since(began); took != 230*time.Second {
					t.Errorf("commits took %s more than there was between them", took-230*time.Second)
				}
				if kept := d.replica.history.events; kept > 50 {
					t.Errorf("%d events are kept for the disk", kept)
				}
				free()
				time.Sleep(time.Minute)
				if s := d.Saving(); s.Saved != d.Store().At() || s.Lag(time.Now()) != 0 || !strings.Contains(log.String(), "keeps up again") {
					t.Errorf("a minute later: %+v; %s", s, log)
				}
				want := contentOf(d.Store())
				k.end()
				again := keep(t, dir, nil)
				defer again.end()
				if diff := cmp.Diff(want, contentOf(again.Store()), cmp.Comparer(sameState)); diff != "" {
					t.Errorf("restored (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A process can end while its disk hangs. Until the disk answers nobody else has
// the folder, for what hangs may still be written.
func TestAProcessEndsWhileItsDiskHangs(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"write", "sync"} {
		synctest.Test(t, func(t *testing.T) {
			dir, disk := t.TempDir(), &hanging{kind: kind}
			d, err := openDisk(DiskConfig{Dir: dir}, defaultTuning(), disk)
			if err != nil {
				t.Fatal(err)
			}
			k := runDisk(t, d)
			time.Sleep(time.Second)
			free := disk.hang()
			defer free()
			say(t, d.Store(), map[string]string{"a": "1"})
			time.Sleep(time.Second)
			began := time.Now()
			if err := k.stop(); !errors.Is(err, errNotDrained) || time.Since(began) > 10*time.Second {
				t.Errorf("it ended after %s with error %v", time.Since(began), err)
			}
			if _, err := OpenDisk(DiskConfig{Dir: dir}); err == nil {
				t.Error("the folder is free while something may be written to it")
			}
			free()
			time.Sleep(time.Second)
			next, err := OpenDisk(DiskConfig{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			next.Close()
		})
	}
}

// unsyncable is a disk that takes everything and puts nothing on disk.
type unsyncable struct {
	diskFiles
	broken atomic.Bool
}

func (u *unsyncable) create(path string) (file, error) {
	f, err := u.diskFiles.create(path)
	return &unsyncableFile{f, u}, err
}

type unsyncableFile struct {
	file
	on *unsyncable
}

func (f *unsyncableFile) Sync() error {
	if f.on.broken.Load() {
		return syscall.EIO
	}
	return f.file.Sync()
}

// What was handed to the operating system stays there while syncing fails, for a
// process that is killed meanwhile. Tries that fail leave no more than one journal.
func TestWhatCannotBeSyncedSurvivesAKill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir, disk := t.TempDir(), &unsyncable{}
		k := keep(t, dir, func(d *Disk) { d.files = disk })
		say(t, k.Store(), map[string]string{"a": "1"})
		time.Sleep(time.Second)
		before := len(filesIn(t, dir))
		disk.broken.Store(true)
		for range 20 {
			say(t, k.Store(), map[string]string{"a": time.Now().String()})
			time.Sleep(10 * time.Second)
			killed := t.TempDir() // as the process that is killed leaves it
			if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			d, err := OpenDisk(DiskConfig{Dir: killed})
			if err != nil {
				t.Fatal(err)
			}
			written := k.Saving().Written.Revision
			if got := d.Store().Revision(); got < written || d.Restored().Damage != nil {
				t.Fatalf("restored revision %d of %d, damage %v", got, written, d.Restored().Damage)
			}
			d.Close()
		}
		if left := len(filesIn(t, dir)) - before; left > 3 {
			t.Errorf("tries to save left %d files", left)
		}
		disk.broken.Store(false)
		time.Sleep(time.Minute)
		k.end()
		again := keep(t, dir, nil)
		defer again.end()
		if again.Store().Revision() != k.Store().Revision() {
			t.Errorf("restored revision %d of %d", again.Store().Revision(), k.Store().Revision())
		}
	})
}

func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Each commit is handed over by itself, not when it is synced.
func TestACommitIsHandedOverAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, t.TempDir(), func(d *Disk) { d.tuning.gather = time.Hour })
		defer k.end()
		for range 100 {
			revision := say(t, k.Store(), map[string]string{"a": time.Now().String()})
			time.Sleep(time.Nanosecond)
			if s := k.Saving(); s.Written.Revision != revision || s.WriteLag(time.Now()) != 0 || s.Saved.Revision >= revision && revision > 1 {
				t.Fatalf("revision %d was committed: %+v", revision, s)
			}
		}
	})
}
