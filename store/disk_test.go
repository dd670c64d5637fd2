package store

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
)

// kept is a disk that runs until it is stopped.
type kept struct {
	*Disk
	t    failing
	stop func() error
}

type failing interface {
	Helper()
	Fatalf(format string, args ...any)
}

// keep opens a folder and saves to it. change may alter how.
func keep(t failing, dir string, change func(*Disk)) *kept {
	t.Helper()
	d, err := OpenDisk(DiskConfig{Dir: dir})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	d.tuning.gather = time.Millisecond
	if change != nil {
		change(d)
	}
	return runDisk(t, d)
}

// runDisk saves what is committed to a disk until it is stopped.
func runDisk(t failing, d *Disk) *kept {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	return &kept{d, t, sync.OnceValue(func() error {
		cancel()
		return <-ended
	})}
}

func (k *kept) end() {
	k.t.Helper()
	if err := k.stop(); err != nil {
		k.t.Fatalf("stop: %v", err)
	}
}

// say commits contents by name; an empty one is a delete.
func say(t failing, m *Memory, contents map[string]string) uint64 {
	t.Helper()
	var c model.Commit
	for name, content := range contents {
		w := model.Write{Record: noteOf(name, content), Delete: content == ""}
		stored, _ := m.Get(w.Record.Ref)
		w.Record.UID, w.Record.Revision = stored.UID, stored.Revision
		c.Writes = append(c.Writes, w)
	}
	revision, err := m.Commit(context.Background(), c)
	if err != nil {
		t.Fatalf("commit: %v", err)
	}
	return revision
}

func noteOf(name, content string) model.Record {
	return model.Record{
		Ref:  model.Ref{Kind: "Note", Key: model.Key{Source: "files", Name: name}},
		Spec: model.Opaque{Content: content},
	}
}

func contentOf(m *Memory) map[model.Ref]model.Record {
	out := map[model.Ref]model.Record{}
	for r := range m.List(model.Filter{}) {
		out[r.Ref] = r
	}
	return out
}

// Everything a record can say comes back, with the revisions of before and
// under another epoch.
func TestWhatIsSavedComesBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := keep(t, dir, nil)
	if got := k.Restored(); !got.Saved.IsZero() || got.Records != 0 || got.Damage != nil {
		t.Errorf("restored %+v from an empty folder", got)
	}
	m := k.Store()
	if _, err := m.Commit(t.Context(), model.Commit{Writes: everything()}); err != nil {
		t.Fatal(err)
	}
	began := time.Now().Add(-time.Second) // the kernel's clock of files ticks, and is behind by up to 10 ms
	say(t, m, map[string]string{"a": "1", "b": "1"})
	say(t, m, map[string]string{"a": "2", "b": ""})
	want, at := contentOf(m), m.At()
	k.end()

	again := keep(t, dir, nil)
	defer again.end()
	m = again.Store()
	if diff := cmp.Diff(want, contentOf(m), cmp.Comparer(sameState)); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
	restored := again.Restored()
	if now := m.At(); now.Revision != at.Revision || now.Epoch == at.Epoch || restored.At != now {
		t.Errorf("restored to %+v, reported as %+v, after %+v; want its revision under another epoch", now, restored.At, at)
	}
	if restored.Records != len(want) || restored.Saved.Before(began) || restored.Saved.After(time.Now()) || restored.Bytes == 0 {
		t.Errorf("reported as %+v", restored)
	}
	if next := say(t, m, map[string]string{"a": "3"}); next != at.Revision+1 {
		t.Errorf("the next commit has revision %d after %d", next, at.Revision)
	}
	if r, _ := m.Get(noteOf("a", "").Ref); r.Generation != 3 || r.UID != want[r.Ref].UID {
		t.Errorf("a restored record that was changed: %+v", r)
	}
}

func sameState(a, b model.Record) bool {
	return a.SameContent(b) && a.UID == b.UID && a.Revision == b.Revision && a.Generation == b.Generation
}

// everything is a record of each kind, with every field set.
func everything() []model.Write {
	owner := model.Ref{Kind: model.KindService, Key: model.Key{Source: "files", Namespace: "default", Name: "web"}}
	ref := func(kind model.Kind, name string) model.Ref {
		return model.Ref{Kind: kind, Key: model.Key{Source: "files", Namespace: "default", Name: name}}
	}
	since := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	labels := model.MapOf(map[string]string{"app": "web", "<&>\u2028": "\x00\x1em\x00\x00"})
	meta := model.Meta{Labels: labels, Annotations: labels, Created: since}
	endpoint := model.Endpoint{
		Address: "10.0.0.1", Ports: model.MapOf(map[string]uint32{"http": 8080}), Labels: labels, Network: "n",
		Locality: model.Locality{Region: "r", Zone: "z", SubZone: "s"}, Weight: 7, ServiceAccount: "sa", Health: model.Draining,
	}
	return []model.Write{
		{Record: model.Record{Ref: owner, Place: "a.yaml", Status: model.Status{Stale: "broken", Since: since}, Spec: model.Service{
			Meta: meta, Hosts: model.ListOf("a", "b"), Addresses: model.ListOf("10.0.0.0/8"),
			Ports:    model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP", TargetPort: 8080}),
			Location: model.MeshInternal, Resolution: model.ResolutionStatic, ExportTo: model.ListOf("."),
			SubjectAltNames: model.ListOf("spiffe://x"), WorkloadSelector: labels,
		}}},
		{Record: model.Record{Ref: ref(model.KindEndpoint, "web/1"), Owner: owner, Spec: endpoint}},
		{Record: model.Record{Ref: ref(model.KindWorkload, "vm"), Spec: model.Workload{Meta: meta, Endpoint: endpoint}}},
		{Record: model.Record{Ref: ref(model.KindSource, "files"), Spec: model.SourceMark{}}},
		{Record: model.Record{Ref: ref("Future", "x"), Spec: model.Opaque{Content: "\x00\xffx"}}},
	}
}

// Any history comes back, however often the process ends, and however often a
// new snapshot is written.
func TestAnyHistoryComesBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "") //nolint:usetesting // one for each history
		if err != nil {
			rt.Fatal(err)
		}
		tune := func(d *Disk) {
			d.tuning.minJournal = rapid.Int64Range(1, 2000).Draw(rt, "journal")
			d.tuning.maxJournals = rapid.IntRange(0, 4).Draw(rt, "journals")
		}
		want := map[model.Ref]model.Record{}
		var revision uint64
		for range rapid.IntRange(1, 6).Draw(rt, "starts") {
			k := keep(rt, dir, tune)
			if diff := cmp.Diff(want, contentOf(k.Store()), cmp.Comparer(sameState)); diff != "" || k.Store().Revision() != revision {
				rt.Fatalf("revision %d after %d; (-want +got):\n%s", k.Store().Revision(), revision, diff)
			}
			for range rapid.IntRange(0, 12).Draw(rt, "commits") {
				names, contents := rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.SampledFrom([]string{"", "x", strings.Repeat("y", 300)})
				revision = say(rt, k.Store(), rapid.MapOfN(names, contents, 1, 3).Draw(rt, "commit"))
			}
			want = contentOf(k.Store())
			k.end()
		}
	})
}

func kindsOf(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]bool{}
	for _, e := range entries {
		prefix, _, _ := strings.Cut(e.Name(), "-")
		set[prefix] = true
	}
	var out []string
	for _, prefix := range []string{"snapshot", "journal", "lock"} {
		if set[prefix] {
			out = append(out, prefix)
		}
		delete(set, prefix)
	}
	for other := range maps.Keys(set) {
		t.Errorf("%s is left behind", other)
	}
	return out
}

// However much is committed, what lies on disk is no more than a snapshot and
// journals of about its length.
func TestTheFolderIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		k := keep(t, dir, func(d *Disk) { d.tuning.minJournal = 4 << 10 })
		long := strings.Repeat("x", 500)
		for i := range 400 {
			say(t, k.Store(), map[string]string{"a": long + string(rune('a'+i%26)), "b": long})
			time.Sleep(time.Second)
		}
		k.end()
		again := keep(t, dir, nil) // tidies
		defer again.end()
		files, err := filepath.Glob(filepath.Join(dir, "*-*"))
		if err != nil || len(files) > 4 || again.Restored().Bytes > 12<<10 {
			t.Errorf("%d commits of 500 bytes left %d in %q, error %v", 400, again.Restored().Bytes, files, err)
		}
	})
}

// A commit, or a lag, of more than the history is saved as a new snapshot.
func TestAResetIsSavedAsASnapshot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := OpenDisk(DiskConfig{Dir: dir, Store: Config{History: 2}})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"1", "2", "3"} {
		say(t, d.Store(), map[string]string{"a": n, "b": n, "c": n, "d": n})
		say(t, d.Store(), map[string]string{"d": ""})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		want := contentOf(d.Store())
		if err := d.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if d, err = OpenDisk(DiskConfig{Dir: dir, Store: Config{History: 2}}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, contentOf(d.Store()), cmp.Comparer(sameState)); diff != "" {
			t.Errorf("restored (-want +got):\n%s", diff)
		}
	}
	d.Close()
	if got := kindsOf(t, dir); len(got) != 2 { // a snapshot and the lock
		t.Errorf("the folder holds %q", got)
	}
}

func TestAFolderServesOneStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := keep(t, dir, nil)
	_, err := OpenDisk(DiskConfig{Dir: dir})
	var inUse *InUseError
	if !errors.As(err, &inUse) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second store in the folder: error %v", err)
	}
	say(t, k.Store(), map[string]string{"a": "1"})
	k.end()
	again := keep(t, dir, nil)
	again.end()
	if again.Restored().Records != 1 {
		t.Errorf("restored %+v, want the one record", again.Restored())
	}
}

func TestAFolderThatCannotBeUsedIsNamed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDisk(DiskConfig{Dir: path}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v", err)
	}
}

// The operating system cannot sync the null device, and says so to a process that asks.
func TestSyncReachesTheOperatingSystem(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems may answer otherwise")
	}
	if err := (diskFiles{}).sync(os.DevNull); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("the sync of %s: %v, want %v", os.DevNull, err, syscall.EINVAL)
	}
}
