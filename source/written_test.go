package source_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/store"
)

const splits = "isthmus.splits"

func mustWrite(t *testing.T, s source.Store, lease string) *source.Written {
	t.Helper()
	w, err := source.NewWritten(splits, s, source.WrittenConfig{Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func split(name, content string) model.Record {
	return model.Record{Ref: model.Ref{Kind: "Split", Key: model.Key{Name: name}}, Spec: model.Opaque{Content: content}}
}

func commitOf(r model.Record) model.Commit { return model.Commit{Writes: []model.Write{{Record: r}}} }

// Two writers that base their writes on the same record: the second gets
// what is stored instead, and goes on from there.
func TestAWrittenSourceComparesAndSets(t *testing.T) {
	t.Parallel()
	s := store.NewMemory(store.Config{})
	one, two := mustWrite(t, s, "one"), mustWrite(t, s, "two")
	if _, err := one.Write(t.Context(), commitOf(split("a", "1"))); err != nil {
		t.Fatal(err)
	}
	ref := model.Ref{Kind: "Split", Key: model.Key{Source: splits, Name: "a"}}
	stored, _ := s.Get(ref)
	if stored.Lease != "one" {
		t.Errorf("stored with lease %q", stored.Lease)
	}
	for _, w := range []struct {
		writer  *source.Written
		content string
		fits    bool
	}{{two, "2", true}, {one, "3", false}, {two, "4", false}} {
		change := split("a", w.content)
		change.UID, change.Revision = stored.UID, stored.Revision
		_, err := w.writer.Write(t.Context(), commitOf(change))
		var c *store.ConflictError
		switch now, _ := s.Get(ref); {
		case w.fits && (err != nil || now.Lease != "two"):
			t.Errorf("content %s: error %v, lease %q", w.content, err, now.Lease)
		case !w.fits && (!errors.As(err, &c) || c.Ref != ref || c.Stored.Revision != now.Revision):
			t.Errorf("content %s: error %v, want a conflict that names revision %d", w.content, err, now.Revision)
		}
	}
}

func TestAWrittenSourceTakesOnlyItsOwn(t *testing.T) {
	t.Parallel()
	s := store.NewMemory(store.Config{})
	w := mustWrite(t, s, "")
	strange, wrong, mark := split("a", "1"), split("a", "1"), split("a", "1")
	strange.Source, wrong.Kind = "legacy", model.KindService
	mark.Kind, mark.Spec = model.KindSource, model.SourceMark{}
	for what, r := range map[string]model.Record{"another source's": strange, "a wrong specification": wrong, "a mark": mark} {
		if _, err := w.Write(t.Context(), commitOf(r)); err == nil {
			t.Errorf("%s was written", what)
		}
	}
	if s.Revision() != 0 {
		t.Errorf("the store is at revision %d", s.Revision())
	}
	if _, err := source.NewWritten("legacy", s, source.WrittenConfig{}); err == nil {
		t.Error("a written source has a name that a configured one may have")
	}
}

// Whatever two writers do at the same time, whenever the process is killed:
// the history of what is stored is serial. Each write that was acknowledged
// is one step from what was stored before it, and a restart goes back to the
// state after a step, never before one that was on disk.
func TestTwoWritersEndInASerialHistory(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		h := &serial{root: filepath.Join(root, strconv.Itoa(n)), counts: []counts{{}}}
		for range rapid.IntRange(1, 3).Draw(rt, "lives") {
			h.plans = append(h.plans, [2][]deed{drawDeeds(rt, "one"), drawDeeds(rt, "two")})
			h.kills = append(h.kills, time.Duration(rapid.IntRange(0, 2000).Draw(rt, "kill"))*time.Millisecond)
		}
		synctest.Test(t, func(*testing.T) { h.run() })
		if h.wrong != nil {
			rt.Fatal(h.wrong)
		}
	})
}

// done is what a writer was acknowledged to have done at a revision.
type done struct {
	name   string
	delete bool
}

// deed adds one to a record, or deletes it, after a while.
type deed struct {
	name   string
	delete bool
	after  time.Duration
}

func drawDeeds(t *rapid.T, writer string) []deed {
	one := rapid.Custom(func(t *rapid.T) deed {
		return deed{
			name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"), delete: rapid.IntRange(0, 5).Draw(t, "delete") == 0,
			after: time.Duration(rapid.IntRange(0, 200).Draw(t, "after")) * time.Millisecond,
		}
	})
	return rapid.SliceOfN(one, 1, 12).Draw(t, writer)
}

// counts is what each record says after a revision.
type counts map[string]int

// serial is one history over several lives of a process.
type serial struct {
	root  string
	plans [][2][]deed
	kills []time.Duration

	counts []counts // by revision
	wrong  error
}

func (h *serial) run() {
	dir := filepath.Join(h.root, "0")
	for life := range h.plans {
		next := filepath.Join(h.root, strconv.Itoa(life+1))
		if h.wrong = h.live(dir, next, life); h.wrong != nil {
			return
		}
		dir = next
	}
	h.wrong = h.live(dir, "", -1)
}

// live opens what the last life left, lets both writers write, and leaves a
// copy of the folder as it was at some moment.
func (h *serial) live(dir, next string, life int) error {
	d, err := store.OpenDisk(store.DiskConfig{Dir: dir})
	if err != nil {
		return err
	}
	if err := h.restored(d); err != nil || life < 0 {
		d.Close()
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	var saving, writing sync.WaitGroup
	saving.Go(func() { _ = d.Run(ctx) })
	failed := make([]error, 2)
	acknowledged := [2]map[uint64]done{{}, {}}
	history := follow(ctx, &saving, d.Store())
	for i, deeds := range h.plans[life] {
		writing.Go(func() { failed[i] = write(ctx, d.Store(), strconv.Itoa(i), deeds, acknowledged[i]) })
	}
	var copied error
	var saved uint64
	writing.Go(func() {
		time.Sleep(h.kills[life])
		synctest.Wait() // A kill is at one moment, and a copy is not.
		saved = d.Saving().Saved.Revision
		copied = os.CopyFS(next, os.DirFS(dir))
	})
	writing.Wait()
	synctest.Wait()
	stop()
	saving.Wait()
	err = errors.Join(append(failed, copied, h.judge(*history, acknowledged))...)
	h.leave(saved)
	return err
}

// restored expects the state after some revision, not before what was on disk.
func (h *serial) restored(d *store.Disk) error {
	at := d.Restored().At.Revision
	if at >= uint64(len(h.counts)) || h.counts[at] == nil {
		return fmt.Errorf("restored revision %d of %d, or one that was on disk is lost", at, len(h.counts)-1)
	}
	h.counts = h.counts[:at+1]
	if got := countsIn(d.Store()); fmt.Sprint(got) != fmt.Sprint(h.counts[at]) {
		return fmt.Errorf("restored %v at revision %d, want %v", got, at, h.counts[at])
	}
	return nil
}

// leave makes every state before what was on disk one that must not return.
func (h *serial) leave(saved uint64) {
	for i := range h.counts {
		if uint64(i) < saved {
			h.counts[i] = nil
		}
	}
}

func countsIn(s source.Lister) counts {
	all := counts{}
	for r := range s.List(model.Filter{Kind: "Split"}) {
		all[r.Name], _ = strconv.Atoi(r.Spec.(model.Opaque).Content)
	}
	return all
}

// write does the deeds of one writer, each until it fits what is stored, and
// notes which revision was acknowledged for what.
func write(ctx context.Context, s *store.Memory, lease string, deeds []deed, acknowledged map[uint64]done) error {
	w, err := source.NewWritten(splits, s, source.WrittenConfig{Lease: lease})
	if err == nil {
		err = w.Prime(ctx)
	}
	for _, d := range deeds {
		if err != nil {
			return err
		}
		time.Sleep(d.after)
		for err = errConflict; errors.Is(err, errConflict); {
			err = d.try(ctx, s, w, acknowledged)
		}
	}
	return err
}

var errConflict = errors.New("conflict")

func (d deed) try(ctx context.Context, s *store.Memory, w *source.Written, acknowledged map[uint64]done) error {
	at := s.At()
	r := split(d.name, "1")
	r.Source = splits
	stored, ok := s.Get(r.Ref)
	if ok {
		n, _ := strconv.Atoi(stored.Spec.(model.Opaque).Content)
		r.UID, r.Revision, r.Spec = stored.UID, stored.Revision, model.Opaque{Content: strconv.Itoa(n + 1)}
	}
	if d.delete && !ok {
		return nil
	}
	time.Sleep(time.Millisecond) // Somebody may come between.
	revision, err := w.Write(ctx, model.Commit{Writes: []model.Write{{Record: r, Delete: d.delete}}, Epoch: at.Epoch})
	if c, ok := errors.AsType[*store.ConflictError](err); ok {
		// What it names was stored then. The other writer may have gone on since.
		if now := s.At().Revision; c.Ref != r.Ref || c.Stored.Revision == r.Revision || c.Stored.Revision > now {
			return fmt.Errorf("the conflict %w names what was never stored, at revision %d", err, now)
		}
		return errConflict
	}
	if err == nil {
		acknowledged[revision] = done{r.Name, d.delete}
	}
	return err
}

// follow keeps what a watch tells, from what is stored now.
func follow(ctx context.Context, parts *sync.WaitGroup, s *store.Memory) *[]model.Batch {
	all := new([]model.Batch)
	watch := s.WatchFrom(ctx, model.Filter{}, model.Start{Held: s.At()})
	parts.Go(func() {
		for b, err := range watch {
			if err == nil {
				*all = append(*all, b)
			}
		}
	})
	return all
}

// judge folds what the watch delivered, and expects each step to be an acknowledged
// write of one writer, and the next of its record.
func (h *serial) judge(history []model.Batch, acknowledged [2]map[uint64]done) error {
	for _, b := range history {
		now := maps.Clone(h.counts[len(h.counts)-1])
		revision := uint64(len(h.counts))
		switch e := b.Events[0].(type) {
		case model.Upsert:
			if e.Record.Kind == model.KindSource {
				break // It is primed, once in all its lives on disk.
			}
			n, _ := strconv.Atoi(e.Record.Spec.(model.Opaque).Content)
			if n != now[e.Record.Name]+1 {
				return fmt.Errorf("revision %d: %s says %d after %d: a write is lost", revision, e.Record.Name, n, now[e.Record.Name])
			}
			lease, _ := strconv.Atoi(e.Record.Lease)
			if got := acknowledged[lease][revision]; got != (done{e.Record.Name, false}) {
				return fmt.Errorf("revision %d: %s of writer %d, who was acknowledged %+v", revision, e.Record.Name, lease, got)
			}
			now[e.Record.Name] = n
		case model.Delete:
			want := done{e.Record.Name, true}
			if acknowledged[0][revision] != want && acknowledged[1][revision] != want {
				return fmt.Errorf("revision %d: the delete of %s, which nobody was acknowledged", revision, e.Record.Name)
			}
			delete(now, e.Record.Name)
		default:
			return fmt.Errorf("revision %d: a %T", revision, e)
		}
		h.counts = append(h.counts, now)
		delete(acknowledged[0], revision)
		delete(acknowledged[1], revision)
	}
	if left := len(acknowledged[0]) + len(acknowledged[1]); left > 0 {
		return fmt.Errorf("%d acknowledged writes are in no revision: %v", left, acknowledged)
	}
	return nil
}
