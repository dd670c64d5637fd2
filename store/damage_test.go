package store

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/model"
)

// sample is a small folder: a snapshot, a journal of three commits that were
// synced, and one of two more, of a second start. states is what was stored
// after each commit.
func sample(t *testing.T) (files map[string][]byte, states []map[model.Ref]model.Record) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		k := keep(t, dir, nil)
		commit := func(contents map[string]string) {
			say(t, k.Store(), contents)
			states = append(states, contentOf(k.Store()))
			time.Sleep(time.Second)
		}
		commit(map[string]string{"a": "1", "b": "1"})
		for _, c := range []map[string]string{{"a": "2", "c": "1"}, {"b": "", "c": "2"}, {"a": "3"}} {
			commit(c)
		}
		k.end()
		k = keep(t, dir, nil)
		commit(map[string]string{"a": "4", "c": ""})
		commit(map[string]string{"b": "5"})
		k.end()
		files = map[string][]byte{}
		for _, name := range []string{"snapshot-00000001", "journal-00000002", "journal-00000003"} {
			content, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			files[name] = content
		}
	})
	return files, states
}

// open restores what files hold, and says which of the states that is; -1 for
// none, that is an empty store after damage.
func open(t *testing.T, files map[string][]byte, states []map[model.Ref]model.Record) (state int, r Restored) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := OpenDisk(DiskConfig{Dir: dir})
	if err != nil {
		t.Fatalf("damage is fatal: %v", err)
	}
	defer d.Close()
	r, got := d.Restored(), contentOf(d.Store())
	if r.Damage != nil {
		if len(got) > 0 || d.Store().Revision() != 0 {
			t.Fatalf("%v, and yet %d records are restored", r.Damage, len(got))
		}
		wereSetAside(t, dir, len(files), r.Damage)
		return -1, r
	}
	state = slices.IndexFunc(states, func(s map[model.Ref]model.Record) bool { return maps.EqualFunc(s, got, sameState) })
	if state < 0 {
		t.Fatalf("restored what was never stored:\n%s", cmp.Diff(states[len(states)-1], got))
	}
	return state, r
}

// load is open without the disk, for the many; every so often it is open.
func load(t *testing.T, n int, files map[string][]byte, states []map[model.Ref]model.Record) (state int) {
	t.Helper()
	if n%151 == 0 {
		state, _ := open(t, files, states)
		return state
	}
	l := newLoading()
	for _, name := range []string{"snapshot-00000001", "journal-00000002", "journal-00000003"} {
		read, content := l.journal, files[name]
		if name == "snapshot-00000001" {
			read = l.snapshot
		}
		if read(bytes.NewReader(content), int64(len(content))) != nil {
			return -1
		}
	}
	got := map[model.Ref]model.Record{}
	for ref, r := range l.records.Map().All() {
		got[ref] = *r
	}
	state = slices.IndexFunc(states, func(s map[model.Ref]model.Record) bool { return maps.EqualFunc(s, got, sameState) })
	if state < 0 {
		t.Errorf("loaded what was never stored: %v", got)
	}
	return state
}

func wereSetAside(t *testing.T, dir string, files int, damage *DamageError) {
	t.Helper()
	left, err := folder(dir).list()
	aside, _ := filepath.Glob(filepath.Join(dir, "*-*.*-*"))
	if err != nil || len(left) > 0 || len(aside) != files || len(damage.Moved) != files {
		t.Fatalf("%d files are left and %q set aside, error %v", len(left), aside, err)
	}
}

// Every byte of every file is changed, in several ways. What a file says of
// itself is known not to be so, or it was the tail of the last journal, which
// is then cut off at a whole commit.
func TestEveryDamagedByteIsNoticed(t *testing.T) {
	t.Parallel()
	files, states := sample(t)
	last := len(states) - 1
	for name, content := range files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outcomes := map[int]int{}
			for at := range content {
				for _, flip := range []byte{0x01, 0x80, content[at]} { // the last makes it zero
					damaged := maps.Clone(files)
					damaged[name] = slices.Clone(content)
					damaged[name][at] ^= flip
					if flip == 0 {
						continue
					}
					state := load(t, at, damaged, states)
					outcomes[state]++
					if state >= 0 && state != last && (name != "journal-00000003" || at < len(content)-200) {
						t.Errorf("byte %d of %d: state %d of %d is taken for the last", at, len(content), state, last)
					}
				}
			}
			if outcomes[-1] < len(content) {
				t.Errorf("outcomes %v of %d bytes", outcomes, len(content))
			}
		})
	}
}

// Every file is cut at every length. Only the last journal may have been cut
// short by a kill; it is then read up to a whole commit.
func TestEveryTruncationIsNoticed(t *testing.T) {
	t.Parallel()
	files, states := sample(t)
	last := len(states) - 1
	for name, content := range files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outcomes := map[int]int{}
			for length := range content {
				cut := maps.Clone(files)
				cut[name] = content[:length]
				outcomes[load(t, length, cut, states)]++
			}
			for state := range outcomes {
				if name == "journal-00000003" && state < last-2 || name != "journal-00000003" && state >= 0 && state != last {
					t.Errorf("outcomes %v of %d lengths, with %d states", outcomes, len(content), len(states))
				}
			}
		})
	}
}

// What was written after the last sync may be there in part, in any order, or
// be zeros after a power failure. It is cut off; what was synced is not.
func TestTheTailThatWasNotSyncedIsCut(t *testing.T) {
	t.Parallel()
	files, states := sample(t)
	const name = "journal-00000003"
	for what, c := range map[string]struct {
		change func(b []byte) []byte
		want   int
	}{
		"as it is":                {func(b []byte) []byte { return b }, 5},
		"zeros after":             {func(b []byte) []byte { return append(b, make([]byte, 4096)...) }, 5},
		"garbage after":           {func(b []byte) []byte { return append(b, strings.Repeat("garbage ", 100)...) }, 5},
		"a frame cut short":       {func(b []byte) []byte { return append(b, appendFrame(nil, frameUpsert, []byte("{}"))[:17]...) }, 5},
		"a commit that never was": {func(b []byte) []byte { return append(b, appendFrame(nil, frameUpsert, []byte(noteJSON))...) }, 5},
		"lost, then found": {func(b []byte) []byte {
			b = append(b, make([]byte, 100)...)
			return appendFrame(b, frameCommit, []byte(`{"revision":7,"after":6,"changes":0}`))
		}, 5},
		"lost, and it had been synced": {func(b []byte) []byte {
			b = append(b, make([]byte, 100)...)
			return appendFrame(b, frameMark, []byte(`{"time":1,"synced":`+strconv.Itoa(len(b))+`}`))
		}, -1},
	} {
		changed := maps.Clone(files)
		changed[name] = c.change(slices.Clone(files[name]))
		if state, r := open(t, changed, states); state != c.want {
			t.Errorf("%s: restored state %d, want %d; %v", what, state, c.want, r.Damage)
		}
	}
}

const noteJSON = `{"kind":"Note","key":{"source":"files","name":"z"},"uid":"01000000000000000000000000000000","revision":7,"generation":1,"spec":"z"}`

// Files that are whole but do not belong together are not loaded either, and
// the report says what to do.
func TestWhatDoesNotFitIsSetAside(t *testing.T) {
	t.Parallel()
	files, states := sample(t)
	snapshot, first, second := "snapshot-00000001", "journal-00000002", "journal-00000003"
	with := func(name string, content []byte) map[string][]byte {
		out := maps.Clone(files)
		if out[name] = content; content == nil {
			delete(out, name)
		}
		return out
	}
	frames := func(name string, more ...[]byte) []byte {
		return slices.Concat(append([][]byte{files[name]}, more...)...)
	}
	for what, c := range map[string]struct {
		files map[string][]byte
		want  string
	}{
		"no snapshot":         {with(snapshot, nil), "the snapshot it goes on from is missing"},
		"a journal missing":   {with(first, nil), "goes on from revision 4, and what comes before it ends at "},
		"journals exchanged":  {map[string][]byte{snapshot: files[snapshot], first: files[second]}, "goes on from revision 4"},
		"a journal as both":   {with(snapshot, files[first]), "is no snapshot"},
		"a snapshot as both":  {with(first, files[snapshot]), "is no journal"},
		"a newer format":      {with(snapshot, []byte("isthmus store 12\n...")), "newer Isthmus"},
		"another file":        {with(snapshot, []byte("hello")), "does not begin as a saved store does"},
		"more of a snapshot":  {with(snapshot, frames(snapshot, files[snapshot])), "is no frame"},
		"an unknown frame":    {with(second, frames(second, appendFrame(nil, 'x', nil))), "unknown type"},
		"a commit cut":        {with(second, frames(second, commitFrame(7, 6, 1))), "a commit of 1 changes has 0"},
		"a gap":               {with(second, frames(second, commitFrame(9, 8, 0))), "revision 9 changes 8"},
		"a delete of nothing": {with(second, frames(second, appendFrame(nil, frameDelete, []byte(`{"kind":"Note","key":{"name":"x"}}`)), commitFrame(7, 6, 1))), "not stored"},
		"no record":           {with(second, frames(second, appendFrame(nil, frameUpsert, []byte(`{}`)), commitFrame(7, 6, 1))), "spec"},
		"another revision":    {with(second, frames(second, appendFrame(nil, frameUpsert, []byte(noteJSON)), commitFrame(8, 6, 1))), "revision 7 in a commit of 8"},
	} {
		state, r := open(t, c.files, states)
		if state != -1 || !strings.Contains(r.Damage.Error(), c.want) || !strings.Contains(r.Damage.Error(), "delete them") {
			t.Errorf("%s: state %d, %v; want %q", what, state, r.Damage, c.want)
		}
	}
}

func commitFrame(revision, after, changes int) []byte {
	return appendFrame(nil, frameCommit, []byte(`{"revision":`+strconv.Itoa(revision)+`,"after":`+strconv.Itoa(after)+`,"changes":`+strconv.Itoa(changes)+`}`))
}

// After damage the folder is used as a new one, and what was set aside stays.
func TestSavingGoesOnAfterDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "snapshot-00000041"), []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := keep(t, dir, nil)
	damage := k.Restored().Damage
	if damage == nil || len(damage.Moved) != 1 {
		t.Fatalf("damage is reported as %v", damage)
	}
	if broken, ok := errors.AsType[*brokenError](damage.Unwrap()); !ok || broken.offset != 0 {
		t.Errorf("the cause is %v", damage.Cause)
	}
	say(t, k.Store(), map[string]string{"a": "1"})
	k.end()
	again := keep(t, dir, nil)
	defer again.end()
	if again.Restored().Damage != nil || again.Restored().Records != 1 {
		t.Errorf("restored %+v, want the one record", again.Restored())
	}
	if content, err := os.ReadFile(damage.Moved[0]); string(content) != "rubbish" {
		t.Errorf("what was set aside holds %q, error %v", content, err)
	}
}

// What a killed process leaves behind besides is cleared away.
func TestLeftoversAreCleared(t *testing.T) {
	t.Parallel()
	files, _ := sample(t)
	dir := t.TempDir()
	for name, content := range files {
		for _, name := range []string{strings.Replace(name, "0000", "0001", 1), name} { // older ones, too
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "snapshot-00000009.tmp"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := keep(t, dir, nil)
	k.end()
	left, err := folder(dir).list()
	if err != nil || len(left) != 3 || left[0].number != 10001 || k.Restored().Damage != nil {
		t.Errorf("left %v, error %v, damage %v", left, err, k.Restored().Damage)
	}
	if got := kindsOf(t, dir); len(got) != 3 {
		t.Errorf("left %q", got)
	}
}
