package sourcetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// Reborn is a shared store that can begin a new epoch, such as a database that is
// restored from a copy.
type Reborn interface {
	Shared
	// NewEpoch begins one and returns it. What is stored stays, and revisions are
	// counted anew.
	NewEpoch() uint64
}

// RunWrittenAcrossEpochs checks a written source in the store that open returns, while
// that begins new epochs. Conflict is as in [RunWritten].
func RunWrittenAcrossEpochs(t *testing.T, open func(ctx context.Context) Reborn, conflict func(error) bool) {
	t.Helper()
	check(t, func(ctx context.Context, rt *rapid.T) {
		h := &reborn{t: rt, ctx: ctx, shared: open(ctx), conflict: conflict, words: map[string]*note{}}
		h.run()
	})
}

// reborn is one history of writers to a source whose store begins new epochs. Each
// names the epoch of what it has read with what it writes.
type reborn struct {
	t        *rapid.T
	ctx      context.Context //nolint:containedctx // of the whole history
	shared   Reborn
	conflict func(error) bool

	mu    sync.Mutex // guards the rest
	diary diary
	wrong string
	epoch uint64 // the store is in
	words map[string]*note
	held  map[string]model.Record // what a watch brought
}

// note is a write: a word that is added to records.
type note struct {
	state state
	names []string
}

// jot is what a writer does once.
type jot struct {
	names        []string
	after, think time.Duration
	tries        int
}

func drawJot(t *rapid.T) jot {
	return jot{
		names: rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 2, rapid.ID).Draw(t, "names"),
		after: drawWait(t, "after"), think: drawWait(t, "thinks"), tries: rapid.IntRange(1, 4).Draw(t, "tries"),
	}
}

func (h *reborn) run() {
	watch := h.shared.Process(h.ctx)
	synctest.Wait()
	h.epoch = watch.At().Epoch
	ctx, end := context.WithCancel(h.ctx)
	var parts, writers sync.WaitGroup
	parts.Go(func() { h.follow(ctx, watch) })
	for n := range 2 {
		jots := rapid.SliceOfN(rapid.Custom(drawJot), 1, 8).Draw(h.t, "jots")
		writers.Go(func() { h.write(fmt.Sprint("writer-", n), jots) })
	}
	epochs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) time.Duration { return 2 * drawWait(t, "until the next epoch") }), 1, 3).Draw(h.t, "epochs")
	for _, wait := range epochs {
		time.Sleep(wait)
		h.begin()
	}
	writers.Wait()
	h.outdated(watch)
	time.Sleep(time.Minute)
	synctest.Wait()
	end()
	parts.Wait()
	h.judge(watch)
}

// begin begins an epoch.
func (h *reborn) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.epoch = h.shared.NewEpoch()
	h.diary.log("epoch %d begins", h.epoch)
}

// violated is for every goroutine of the history; the first one counts.
func (h *reborn) violated(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.wrong == "" {
		h.wrong = fmt.Sprintf(format, args...)
		h.diary.log("WRONG: %s", h.wrong)
	}
}

func (h *reborn) write(who string, jots []jot) {
	s := h.shared.Process(h.ctx)
	w, err := source.NewWritten(written, s, source.WrittenConfig{})
	if err == nil {
		err = w.Prime(h.ctx)
	}
	if err != nil {
		h.violated("%s: %v", who, err)
		return
	}
	for i, j := range jots {
		time.Sleep(j.after)
		for try := range j.tries {
			word := fmt.Sprintf("%s.%d.%d", who, i, try)
			if h.add(s, w, word, j.names, j.think) {
				break
			}
		}
	}
}

// add adds a word to records, and reports whether there is nothing to try again.
func (h *reborn) add(s Store, w *source.Written, word string, names []string, think time.Duration) bool {
	h.mu.Lock()
	c, n := wording(s, word, names), &note{names: names}
	h.words[word] = n
	h.mu.Unlock()
	time.Sleep(think)
	h.mu.Lock()
	outdated := c.Epoch != h.epoch
	h.mu.Unlock()
	revision, err := w.Write(h.ctx, c)
	switch {
	case err == nil && outdated:
		h.violated("%s: written at revision %d upon what was read in another epoch", word, revision)
	case err != nil && outdated && !h.conflict(err):
		h.violated("%s: what was read in another epoch is no conflict: %v", word, err)
	case err != nil && outdated && !strings.Contains(err.Error(), "read it again"):
		h.violated("%s: nobody learns from %q that reading again is the way on", word, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil:
		n.state = done
	case h.conflict(err):
		n.state = conflict
	}
	h.diary.log("%s is written at revision %d: %v", word, revision, err)
	return err == nil || !h.conflict(err)
}

// wording is the commit that adds a word to what is stored.
func wording(s Store, word string, names []string) model.Commit {
	c := model.Commit{Epoch: s.At().Epoch}
	for _, name := range names {
		r := model.Record{Ref: model.Ref{Kind: kind, Key: model.Key{Source: written, Name: name}}}
		stored, _ := s.Get(r.Ref)
		r.UID, r.Revision = stored.UID, stored.Revision
		r.Spec = model.Opaque{Content: strings.Join(append(words(stored), word), " ")}
		c.Writes = append(c.Writes, model.Write{Record: r})
	}
	return c
}

// outdated has a writer read, then an epoch begin, and then the writer write: that is
// a conflict, and goes through once it has read again.
func (h *reborn) outdated(s Store) {
	w, err := source.NewWritten(written, s, source.WrittenConfig{})
	if err != nil {
		h.violated("%v", err)
		return
	}
	synctest.Wait()
	time.Sleep(time.Second) // until the view has come so far
	c := wording(s, "outdated", names)
	h.words["outdated"] = &note{conflict, names}
	h.begin()
	if _, err := w.Write(h.ctx, c); err == nil || !h.conflict(err) || !strings.Contains(err.Error(), "read it again") {
		h.violated("a write upon what was read in another epoch: %v; want a conflict that says to read again", err)
	}
	time.Sleep(time.Second)
	h.words["again"] = &note{done, names}
	if _, err := w.Write(h.ctx, wording(s, "again", names)); err != nil {
		h.violated("a write upon what was read again: %v", err)
	}
}

// follow keeps what a watch brings.
func (h *reborn) follow(ctx context.Context, s Store) {
	h.held = map[string]model.Record{}
	for b, err := range s.WatchFrom(ctx, model.Filter{Source: written, Kind: kind}, model.Start{}) {
		if err != nil {
			return
		}
		for _, event := range b.Events {
			switch e := event.(type) {
			case model.Reset:
				clear(h.held)
			case model.Upsert:
				h.held[e.Record.Name] = e.Record
			case model.Delete:
				h.violated("%s was deleted, and nobody did that", e.Record.Name)
			}
		}
	}
}

// judge holds that each write is in all of its records or in none, once, as its
// writer was answered, and that whoever watches has what is stored.
func (h *reborn) judge(s Store) {
	if h.wrong != "" {
		h.diary.violated("%s", h.wrong)
	}
	times := map[string]map[string]int{} // by word and record
	for r := range s.List(model.Filter{Source: written, Kind: kind}) {
		for _, word := range words(r) {
			if times[word] == nil {
				times[word] = map[string]int{}
			}
			times[word][r.Name]++
		}
		if seen := h.held[r.Name]; !slices.Equal(words(seen), words(r)) || seen.Revision != r.Revision {
			h.diary.violated("the watch has %q of %s at revision %d, and %q is stored at %d", words(seen), r.Name, seen.Revision, words(r), r.Revision)
		}
	}
	for word, n := range h.words {
		if at := times[word]; len(at) > 0 && n.state == conflict || len(at) == 0 && n.state == done || len(at) > 0 && len(at) != len(n.names) {
			h.diary.violated("%s was written to %q, was answered %d, and is in %v", word, n.names, n.state, at)
		}
		for name, count := range times[word] {
			if count != 1 || !slices.Contains(n.names, name) {
				h.diary.violated("%s is in %s %d times", word, name, count)
			}
		}
		delete(times, word)
	}
	if len(times) > 0 {
		h.diary.violated("%v is stored, and nobody wrote that", times)
	}
}
