package store

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What happens to a folder behind the back of its process is noticed and
// repaired, whether anything is committed or not.
func TestAFolderThatIsRemovedIsMadeAgain(t *testing.T) {
	t.Parallel()
	for what, remove := range map[string]func(dir string) error{
		"the folder":    os.RemoveAll,
		"its parent":    func(dir string) error { return os.RemoveAll(filepath.Dir(dir)) },
		"the lock":      func(dir string) error { return os.Remove(filepath.Join(dir, lockName)) },
		"the snapshot":  func(dir string) error { return removeAll(dir, snapshotPrefix+"*") },
		"all files":     func(dir string) error { return removeAll(dir, "*") },
		"moved":         func(dir string) error { return os.Rename(dir, dir+".old") },
		"put elsewhere": func(dir string) error { return errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o700)) },
	} {
		for _, idle := range []bool{true, false} {
			t.Run(what+", idle: "+strconv.FormatBool(idle), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					dir, log := filepath.Join(t.TempDir(), "state", "isthmus"), &logText{}
					d, err := openDisk(DiskConfig{Dir: dir, Log: log.log()}, defaultTuning(), diskFiles{})
					if err != nil {
						t.Fatal(err)
					}
					k := runDisk(t, d)
					defer k.end()
					say(t, d.Store(), map[string]string{"a": "1", "b": "1"})
					time.Sleep(time.Second)
					if err := remove(dir); err != nil {
						t.Fatal(err)
					}
					if !idle {
						say(t, d.Store(), map[string]string{"a": "2"})
					}
					var reported error
					for range 600 {
						time.Sleep(10 * time.Millisecond)
						if s := d.Saving(); s.Err != nil {
							reported = s.Err
							if s.Saved.Revision != 0 {
								t.Fatalf("revision %d is said to be on disk: %+v", s.Saved.Revision, s)
							}
						}
					}
					if !errors.Is(reported, errNotOurs) || !strings.Contains(log.String(), "removed or replaced") {
						t.Errorf("it is reported as %v; %s", reported, log)
					}
					if s := d.Saving(); s.Err != nil || s.Saved != d.Store().At() || s.Lag(time.Now()) != 0 {
						t.Errorf("it is not repaired: %+v", s)
					}
					if _, err := OpenDisk(DiskConfig{Dir: dir}); err == nil {
						t.Error("a second process has the folder")
					}
					want := contentOf(d.Store())
					k.end()
					again := keep(t, dir, nil)
					defer again.end()
					if diff := cmp.Diff(want, contentOf(again.Store()), cmp.Comparer(sameState)); diff != "" || again.Restored().Damage != nil {
						t.Errorf("restored (-want +got):\n%s", diff)
					}
				})
			})
		}
	}
}

func removeAll(dir, pattern string) error {
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	for _, name := range names {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// A process that lost its folder to another one says so, leaves it alone, and
// goes on when it is free. What the other one saved is kept under other names.
func TestAFolderThatAnotherProcessHasIsLeftToIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir, log := filepath.Join(t.TempDir(), "state"), &logText{}
		d, err := openDisk(DiskConfig{Dir: dir, Log: log.log()}, defaultTuning(), diskFiles{})
		if err != nil {
			t.Fatal(err)
		}
		k := runDisk(t, d)
		defer k.end()
		say(t, d.Store(), map[string]string{"a": "ours"})
		time.Sleep(time.Second)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		otherLog := &logText{}
		theirDisk, err := OpenDisk(DiskConfig{Dir: dir, Log: otherLog.log()})
		if err != nil {
			t.Fatal(err)
		}
		other := runDisk(t, theirDisk)
		say(t, other.Store(), map[string]string{"a": "theirs"})
		for range 60 {
			say(t, d.Store(), map[string]string{"a": time.Now().String()})
			say(t, other.Store(), map[string]string{"b": time.Now().String()})
			time.Sleep(time.Second)
		}
		inUse, ok := errors.AsType[*InUseError](d.Saving().Err)
		if !ok || inUse.Holder != strconv.Itoa(os.Getpid()) || d.Saving().Saved.Revision != 0 || !strings.Contains(log.String(), "is in use by process "+inUse.Holder) {
			t.Errorf("a folder that another process has is reported as %+v; %s", d.Saving(), log)
		}
		if s := other.Saving(); s.Failures > 0 || s.Saved != other.Store().At() {
			t.Errorf("the other process is disturbed: %+v; %s", s, otherLog)
		}
		theirs := contentOf(other.Store())
		other.end()
		time.Sleep(time.Minute)
		if s := d.Saving(); s.Err != nil || s.Saved != d.Store().At() {
			t.Errorf("when the folder is free: %+v", s)
		}
		kept, err := filepath.Glob(filepath.Join(dir, "*.replaced-*"))
		if err != nil || len(kept) == 0 {
			t.Fatalf("of the other process %q is kept, error %v", kept, err)
		}
		copied := t.TempDir()
		for _, name := range kept {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			was, _, _ := strings.Cut(filepath.Base(name), ".")
			if err := os.WriteFile(filepath.Join(copied, was), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		again := keep(t, copied, nil)
		defer again.end()
		if diff := cmp.Diff(theirs, contentOf(again.Store()), cmp.Comparer(sameState)); diff != "" {
			t.Errorf("kept of the other process (-want +got):\n%s", diff)
		}
	})
}

// A file system gives the number of a removed file to the next one. A snapshot of another
// process is kept then too.
func TestAnotherProcessMayWriteAFileOfTheSameNumber(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir, log := filepath.Join(t.TempDir(), "state"), &logText{}
		d, err := openDisk(DiskConfig{Dir: dir, Log: log.log()}, defaultTuning(), diskFiles{})
		if err != nil {
			t.Fatal(err)
		}
		k := runDisk(t, d)
		defer k.end()
		say(t, d.Store(), map[string]string{"a": "ours"})
		time.Sleep(time.Second)
		ours, err := filepath.Glob(filepath.Join(dir, snapshotPrefix+"*"))
		if err != nil || len(ours) != 1 {
			t.Fatalf("the snapshots are %q, error %v", ours, err)
		}
		number := filepath.Join(t.TempDir(), "number")
		if err := errors.Join(os.Link(ours[0], number), os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
			t.Fatal(err)
		}
		const theirs = "of another process"
		if err := errors.Join(os.WriteFile(number, []byte(theirs), 0o600), os.Link(number, ours[0])); err != nil {
			t.Fatal(err)
		}
		say(t, d.Store(), map[string]string{"a": "ours again"})
		time.Sleep(time.Minute)
		if s := d.Saving(); s.Err != nil || s.Saved != d.Store().At() {
			t.Errorf("saving ends as %+v; %s", s, log)
		}
		kept, err := filepath.Glob(filepath.Join(dir, "*.replaced-*"))
		if err != nil || len(kept) != 1 {
			t.Fatalf("of the other process %q is kept, error %v; %s", kept, err, log)
		}
		if content, err := os.ReadFile(kept[0]); err != nil || string(content) != theirs {
			t.Errorf("%q is kept, error %v", content, err)
		}
	})
}

// A process that starts while its predecessor is still ending waits for it, and
// says for whom.
func TestAPredecessorThatIsEndingIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir, log := t.TempDir(), &logText{}
		before, err := OpenDisk(DiskConfig{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(1900*time.Millisecond, before.Close)
		next, err := OpenDisk(DiskConfig{Dir: dir, Log: log.log()})
		if err != nil {
			t.Fatal(err)
		}
		defer next.Close()
		if text := log.String(); strings.Count(text, "waiting for that process to end") != 1 || !strings.Contains(text, "process="+strconv.Itoa(os.Getpid())) {
			t.Errorf("the log says %s", text)
		}
		began := time.Now()
		_, err = OpenDisk(DiskConfig{Dir: dir})
		if took := time.Since(began); took < 2*time.Second || took > 3*time.Second || err == nil || !strings.Contains(err.Error(), "did not end within 2s") {
			t.Errorf("after %s: error %v", took, err)
		}
	})
}

// A lock that is a link is not followed: what it leads to would be emptied.
func TestALockThatIsALinkIsNotFollowed(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, lockName)
	if err := os.Symlink(other, link); err != nil {
		t.Skip(err)
	}
	if _, err := OpenDisk(DiskConfig{Dir: dir}); err == nil || !strings.Contains(err.Error(), link) || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("error %v", err)
	}
	if content, err := os.ReadFile(other); string(content) != "precious" {
		t.Errorf("the link leads to %q, error %v", content, err)
	}
}

// Files of numbers that no Isthmus gives hide nothing, and are reported.
func TestFilesOfWildNumbersHideNothing(t *testing.T) {
	t.Parallel()
	files, states := sample(t)
	for _, name := range []string{
		"snapshot-99999999999999999999", "journal-99999999999999999999", "snapshot-9223372036854775807", "journal-9223372036854775807",
		"snapshot-2100000001", "snapshot--0000001", "snapshot-1", "journal-00000000000000000009", "snapshot-", "journal-2",
	} {
		for what, content := range map[string][]byte{"rubbish": []byte("rubbish"), "a snapshot": files["snapshot-00000001"], "a journal": files["journal-00000003"]} {
			with := map[string][]byte{name: content}
			maps.Copy(with, files)
			state, r := open(t, with, states)
			if state != len(states)-1 || r.Damage != nil || len(r.Strange) != 1 || r.Strange[0] != name {
				t.Errorf("%s with %s: state %d of %d, damage %v, strange %q", name, what, state, len(states)-1, r.Damage, r.Strange)
			}
		}
	}
}

// Beside a file of a wild number everything is saved and restored as without it,
// and so it is if the file is a folder.
func TestSavingBesideAWildNumber(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "snapshot-9223372036854775807"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, "journal-00000007", "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		for n := range 5 {
			k := keep(t, dir, func(d *Disk) { d.tuning.minJournal = 1 })
			if got := k.Restored(); got.Records != min(n, 1) || got.Damage != nil || len(got.Strange) != 2 {
				t.Errorf("start %d: restored %+v", n, got)
			}
			say(t, k.Store(), map[string]string{"a": time.Now().String()})
			time.Sleep(time.Second)
			k.end()
		}
	})
}

// A process learns of each source how old its records are, and not only when they
// were saved.
func TestWhatIsRestoredIsAsOldAsItsListing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		at := time.Now().Add(-time.Hour)
		open := func() *kept {
			d, err := OpenDisk(DiskConfig{Dir: dir, Listed: func() map[string]time.Time { return map[string]time.Time{"away": at} }})
			if err != nil {
				t.Fatal(err)
			}
			return runDisk(t, d)
		}
		for range 3 { // from a snapshot, and from a journal
			k := open()
			say(t, k.Store(), map[string]string{"a": time.Now().String()})
			time.Sleep(time.Second)
			k.end()
			d, err := OpenDisk(DiskConfig{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			if got := d.Restored().Listed; len(got) != 1 || !got["away"].Equal(at) {
				t.Errorf("restored sources were listed at %v, want %s", got, at)
			}
			d.Close()
			at = at.Add(time.Minute)
		}
	})
}
