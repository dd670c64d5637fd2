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
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
)

// sample is a small folder: a snapshot, a journal of three commits that were
// synced, and one of two more, of a second start. states is what was stored
// after each commit.
func sample(t *testing.T) (files map[string][]byte, states []map[model.Ref]model.Record) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		k := keep(t, dir, func(d *Disk) { // so that the snapshot has it
			say(t, d.Store(), map[string]string{"a": "1", "b": "1"})
			states = append(states, contentOf(d.Store()))
		})
		time.Sleep(time.Second)
		commit := func(contents map[string]string) {
			say(t, k.Store(), contents)
			states = append(states, contentOf(k.Store()))
			time.Sleep(time.Second)
		}
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
	if r.Damage != nil && r.At.Revision == 0 {
		if len(got) > 0 {
			t.Fatalf("%v, and yet %d records are restored", r.Damage, len(got))
		}
		wereSetAside(t, dir, len(files), r.Damage)
		return -1, r
	}
	state = slices.IndexFunc(states, func(s map[model.Ref]model.Record) bool { return maps.EqualFunc(s, got, sameState) })
	if state < 0 {
		t.Fatalf("restored what was never stored:\n%s", cmp.Diff(states[len(states)-1], got))
	}
	if at := d.Store().Revision(); at != uint64(state)+1 {
		t.Fatalf("restored state %d as of revision %d", state, at)
	}
	if r.Damage != nil {
		wereKept(t, r.Damage)
	}
	return state, r
}

// wereKept makes sure that what is not used is there under another name.
func wereKept(t failing, damage *DamageError) {
	t.Helper()
	if len(damage.Moved) == 0 || damage.Failed != nil {
		t.Fatalf("nothing is kept of %v", damage)
	}
	for _, name := range damage.Moved {
		if _, err := os.Stat(name); err != nil {
			t.Fatalf("%v", err)
		}
	}
}

// load is open without the disk, for the many; every so often it is open. It
// also tells whether damage is noticed.
func load(t *testing.T, n int, files map[string][]byte, states []map[model.Ref]model.Record) (state int, damaged bool) {
	t.Helper()
	if n%151 == 0 {
		state, r := open(t, files, states)
		return state, r.Damage != nil
	}
	l := newLoading()
	for _, name := range []string{"snapshot-00000001", "journal-00000002", "journal-00000003"} {
		read, content := l.journal, files[name]
		if name == "snapshot-00000001" {
			read = l.snapshot
		}
		if damaged = read(bytes.NewReader(content), int64(len(content))) != nil; damaged {
			if name == "snapshot-00000001" {
				return -1, true
			}
			break
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
	return state, damaged
}

// wholeUpTo tells which state is whole in files of which one is only so up to
// an offset.
func wholeUpTo(files map[string][]byte, name string, offset int) (state int) {
	if name == "snapshot-00000001" {
		return -1
	}
	for _, journal := range []string{"journal-00000002", "journal-00000003"} {
		content := files[journal]
		frames := frameReader{r: bytes.NewReader(content), size: int64(len(content))}
		line := bytes.IndexByte(content, '\n') + 1
		frames.r, frames.offset = bytes.NewReader(content[line:]), int64(line)
		for f, err := frames.next(); err == nil; f, err = frames.next() {
			if journal == name && frames.offset > int64(offset) {
				return state
			}
			if f.kind == frameCommit {
				state++
			}
		}
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
// itself is known not to be so, and what comes before it is used, to the last
// whole commit. Of the tail of the last journal nobody knows that it was there.
func TestEveryDamagedByteIsNoticed(t *testing.T) {
	t.Parallel()
	files, states := sample(t)
	last := len(states) - 1
	for name, content := range files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			unnoticed := 0
			for at := range content {
				whole := wholeUpTo(files, name, at)
				for _, flip := range []byte{0x01, 0x80, content[at]} { // the last makes it zero
					damaged := maps.Clone(files)
					damaged[name] = slices.Clone(content)
					damaged[name][at] ^= flip
					if flip == 0 {
						continue
					}
					state, noticed := load(t, at, damaged, states)
					if noticed && state != whole || !noticed && state != last && (name != "journal-00000003" || at < len(content)-200 || state != whole) {
						t.Errorf("byte %d of %d: restored state %d of %d, damage noticed: %t; want state %d", at, len(content), state, last, noticed, whole)
					}
					if !noticed {
						unnoticed++
					}
				}
			}
			if unnoticed > 600 {
				t.Errorf("%d changes of %d bytes were not noticed", unnoticed, len(content))
			}
		})
	}
}

// Every file is cut at every length. What is whole of it is used, and that more
// is missing is noticed, but for the last journal: that may have been cut short
// by a kill.
func TestEveryTruncationIsNoticed(t *testing.T) {
	t.Parallel()
	files, states := sample(t)
	last := len(states) - 1
	for name, content := range files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for length := range content {
				cut := maps.Clone(files)
				cut[name] = content[:length]
				state, noticed := load(t, length, cut, states)
				want := wholeUpTo(files, name, length)
				if name != "journal-00000003" && !noticed {
					want = last // no commit was cut off
				}
				if state != want || !noticed && state != last && name != "journal-00000003" {
					t.Errorf("cut at %d of %d: state %d, damage noticed: %t; want state %d", length, len(content), state, noticed, want)
				}
			}
		})
	}
}

// Whatever becomes of one file, what is restored was stored once, nothing that
// is whole is lost with it, and saving goes on from there.
func TestDamageCostsWhatIsDamaged(t *testing.T) {
	t.Parallel()
	files, states := sample(t)
	names := slices.Sorted(maps.Keys(files))
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "damage") //nolint:usetesting // of one draw, of which there are many
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		name := rapid.SampledFrom(names).Draw(t, "file")
		content := files[name]
		at := rapid.IntRange(0, len(content)-1).Draw(t, "offset")
		damaged := damage(t, slices.Clone(content), at)
		for other, content := range files {
			if other == name {
				content = damaged
			}
			if err := os.WriteFile(filepath.Join(dir, other), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		k := keep(t, dir, nil)
		found := k.Restored()
		got := contentOf(k.Store())
		state := slices.IndexFunc(states, func(s map[model.Ref]model.Record) bool { return maps.EqualFunc(s, got, sameState) })
		switch whole := wholeUpTo(files, name, at); {
		case name == "snapshot-00000001" && state < 0 && len(got) == 0 && found.Damage != nil: // nothing is left to go on from
		case state < 0 || state < whole:
			t.Fatalf("restored state %d, want at least %d; %v", state, whole, found.Damage)
		}
		if found.Damage != nil {
			wereKept(t, found.Damage)
		}
		say(t, k.Store(), map[string]string{"after": "1", "a": "5"})
		left := contentOf(k.Store())
		k.end()
		again := keep(t, dir, nil)
		defer again.end()
		if r := again.Restored(); r.Damage != nil || !maps.EqualFunc(left, contentOf(again.Store()), sameState) {
			t.Fatalf("what was saved after the damage is not restored: %+v", r)
		}
		if found.Damage != nil {
			wereKept(t, found.Damage)
		}
	})
}

// damage flips a bit, cuts something off, or says something twice.
func damage(t *rapid.T, content []byte, at int) []byte {
	switch rapid.IntRange(0, 2).Draw(t, "how") {
	case 0:
		content[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		return content
	case 1:
		return content[:at]
	default:
		end := rapid.IntRange(at, len(content)).Draw(t, "end")
		return slices.Concat(content[:end], content[at:])
	}
}

// The report says what was lost, from where on and of when.
func TestDamageOfAJournalIsReported(t *testing.T) {
	t.Parallel()
	files, states := sample(t)
	const first = "journal-00000002"
	damaged := maps.Clone(files)
	damaged[first] = slices.Clone(files[first])
	at := bytes.Index(damaged[first], []byte(`"revision":3`))
	damaged[first][at] ^= 1
	state, r := open(t, damaged, states)
	lost := r.Damage.Lost
	if state != 1 || lost == nil || lost.Revision != 2 || lost.Changes != 6 || lost.Offset >= int64(at) || !lost.Until.After(lost.Since) || !lost.Since.Equal(r.Saved) {
		t.Fatalf("state %d, lost %+v, saved %s", state, lost, r.Saved)
	}
	for _, want := range []string{first, "checksum differs", "up to revision 2 of " + lost.Since.UTC().Format(time.RFC3339), "about 6 changes from byte " + strconv.FormatInt(lost.Offset, 10), "delete them"} {
		if !strings.Contains(r.Damage.Error(), want) {
			t.Errorf("%q is not in: %v", want, r.Damage)
		}
	}
	if len(r.Damage.Moved) != 2 { // the next one goes on from what is lost
		t.Errorf("kept as %q", r.Damage.Moved)
	}
}

// A snapshot that cannot be read is no loss while the one before it is there.
func TestOlderSnapshotIsUsed(t *testing.T) {
	t.Parallel()
	files, states := sample(t)
	damaged := maps.Clone(files)
	damaged["snapshot-00000004"] = []byte("rubbish")
	state, r := open(t, damaged, states)
	if state != len(states)-1 || r.Damage == nil || len(r.Damage.Moved) != 1 {
		t.Errorf("restored state %d; %v", state, r.Damage)
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
		}, 5},
	} {
		changed := maps.Clone(files)
		changed[name] = c.change(slices.Clone(files[name]))
		if state, r := open(t, changed, states); state != c.want || (r.Damage != nil) != (what == "lost, and it had been synced") {
			t.Errorf("%s: restored state %d, want %d; %v", what, state, c.want, r.Damage)
		}
	}
}

const noteJSON = `{"kind":"Note","key":{"source":"files","name":"z"},"uid":"01000000000000000000000000000000","revision":7,"generation":1,"spec":"z"}`

// Files that are whole but do not belong together are not loaded either, but for
// those that do, and the report says what to do.
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
		state int
	}{
		"no snapshot":         {with(snapshot, nil), "the snapshot it goes on from is missing", -1},
		"a journal missing":   {with(first, nil), "goes on from revision 4, and what comes before it ends at ", 0},
		"journals exchanged":  {map[string][]byte{snapshot: files[snapshot], first: files[second]}, "goes on from revision 4", 0},
		"a journal as both":   {with(snapshot, files[first]), "is no snapshot", -1},
		"a snapshot as both":  {with(first, files[snapshot]), "is no journal", 0},
		"a newer format":      {with(snapshot, []byte("isthmus store 12\n...")), "newer Isthmus", -1},
		"another file":        {with(snapshot, []byte("hello")), "does not begin as a saved store does", -1},
		"more of a snapshot":  {with(snapshot, frames(snapshot, files[snapshot])), "is no frame", -1},
		"an unknown frame":    {with(second, frames(second, appendFrame(nil, 'x', nil))), "unknown type", 5},
		"a commit cut":        {with(second, frames(second, commitFrame(7, 6, 1))), "a commit of 1 changes has 0", 5},
		"a gap":               {with(second, frames(second, commitFrame(9, 8, 0))), "revision 9 changes 8", 5},
		"a delete of nothing": {with(second, frames(second, appendFrame(nil, frameDelete, []byte(`{"kind":"Note","key":{"name":"x"}}`)), commitFrame(7, 6, 1))), "not stored", 5},
		"no record":           {with(second, frames(second, appendFrame(nil, frameUpsert, []byte(`{}`)), commitFrame(7, 6, 1))), "spec", 5},
		"another revision":    {with(second, frames(second, appendFrame(nil, frameUpsert, []byte(noteJSON)), commitFrame(8, 6, 1))), "revision 7 in a commit of 8", 5},
	} {
		state, r := open(t, c.files, states)
		if state != c.state || r.Damage == nil || !strings.Contains(r.Damage.Error(), c.want) || !strings.Contains(r.Damage.Error(), "delete them") {
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
