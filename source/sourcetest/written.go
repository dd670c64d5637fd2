package sourcetest

import (
	"context"
	"errors"
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

// written is the source that is written to, and kind what it holds.
const (
	written            = source.ReservedPrefix + "sourcetest"
	kind    model.Kind = "Note"
)

// RunWritten checks a written source in the store that open returns: a new,
// empty one each time, in whose goroutines ctx is the context of the whole.
// Conflict tells the error of a commit that did not fit from others.
func RunWritten(t *testing.T, open func(ctx context.Context) Shared, conflict func(error) bool) {
	t.Helper()
	t.Run("no write is lost and none takes effect twice", func(t *testing.T) {
		check(t, func(ctx context.Context, rt *rapid.T) {
			h := &writers{t: rt, ctx: ctx, shared: open(ctx), conflict: conflict, outcomes: map[string]*outcome{}}
			h.run()
		})
	})
	t.Run("nobody deletes what is not theirs", func(t *testing.T) {
		check(t, func(ctx context.Context, rt *rapid.T) { unauthorizedDeletes(ctx, rt, open(ctx)) })
	})
}

// writers is one history of processes that write to one source.
type writers struct {
	diary
	t        *rapid.T
	ctx      context.Context //nolint:containedctx // of the whole history
	shared   Shared
	conflict func(error) bool

	mu       sync.Mutex // guards the rest and the diary
	number   int
	outcomes map[string]*outcome // by the word that a write adds
	batches  []model.Batch
	unprimed error // of one that was not killed
}

// outcome is what a writer knows of a write.
type outcome struct {
	state    state
	revision uint64
}

type state int

const (
	unknown  state = iota // it was killed before it was answered
	done                  // it was acknowledged
	conflict              // it did not fit
)

// plan is what one life of a process does.
type plan struct {
	start time.Duration
	kill  time.Duration // after the start; 0 if it comes to its end
	epoch bool          // it names the epoch of what it has read
	deeds []deed
}

// deed is one write: of a record, or of two in one commit.
type deed struct {
	kind  deedKind
	names []string
	after time.Duration // since the one before
	think time.Duration // between reading and writing
	tries int
}

type deedKind int

const (
	appends deedKind = iota
	deletes
	sweeps // deletes what another lease has left behind
)

var names = []string{"a", "b", "c"}

func (h *writers) run() {
	watch := h.shared.Process(h.ctx)
	synctest.Wait()
	var parts sync.WaitGroup
	ctx, end := context.WithCancel(h.ctx)
	parts.Go(func() { h.follow(ctx, watch) })
	synctest.Wait() // what is created and deleted before it watches, nobody sees
	var processes sync.WaitGroup
	for p := range rapid.IntRange(2, 3).Draw(h.t, "processes") {
		lives := rapid.SliceOfN(rapid.Custom(drawPlan), 1, 3).Draw(h.t, "lives")
		processes.Go(func() {
			for life, plan := range lives {
				h.live(fmt.Sprintf("process-%d-%d", p, life), plan)
			}
		})
	}
	processes.Wait()
	time.Sleep(time.Minute) // of those who were killed, something may still arrive
	synctest.Wait()
	end()
	parts.Wait()
	h.judge(watch)
}

func drawPlan(t *rapid.T) plan {
	p := plan{start: drawWait(t, "start"), epoch: rapid.Bool().Draw(t, "names the epoch")}
	if rapid.Bool().Draw(t, "is killed") {
		p.kill = drawWait(t, "kill") + 1
	}
	p.deeds = rapid.SliceOfN(rapid.Custom(drawDeed), 1, 8).Draw(t, "deeds")
	return p
}

func drawDeed(t *rapid.T) deed {
	return deed{
		kind:  rapid.SampledFrom([]deedKind{appends, appends, appends, deletes, sweeps}).Draw(t, "kind"),
		names: rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 2, rapid.ID).Draw(t, "names"),
		after: drawWait(t, "after"), think: drawWait(t, "thinks"), tries: rapid.IntRange(1, 4).Draw(t, "tries"),
	}
}

func drawWait(t *rapid.T, what string) time.Duration {
	return time.Duration(rapid.IntRange(0, 8).Draw(t, what)) * time.Millisecond
}

// live is one life of a process, which has a lease of its own.
func (h *writers) live(lease string, p plan) {
	time.Sleep(p.start)
	ctx, kill := context.WithCancel(h.ctx)
	defer kill()
	if p.kill > 0 {
		defer time.AfterFunc(p.kill, kill).Stop()
	}
	s := h.shared.Process(ctx)
	w, err := source.NewWritten(written, s, source.WrittenConfig{Lease: lease})
	if err == nil {
		err = w.Prime(ctx)
	}
	if err != nil && ctx.Err() == nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.unprimed = fmt.Errorf("%s: %w", lease, err)
		return
	}
	for _, d := range p.deeds {
		if ctx.Err() != nil {
			return
		}
		time.Sleep(d.after)
		h.do(ctx, s, w, lease, d, p.epoch)
	}
}

// do does a deed until it fits, or the writer gives it up.
func (h *writers) do(ctx context.Context, s Store, w *source.Written, lease string, d deed, epoch bool) {
	for range d.tries {
		at := s.At()
		c := h.commit(s, lease, d)
		if len(c.Writes) == 0 {
			return
		}
		if epoch {
			c.Epoch = at.Epoch
		}
		word, o := h.enter(c)
		time.Sleep(d.think)
		revision, err := w.Write(ctx, c)
		h.mu.Lock()
		switch {
		case err == nil:
			o.state, o.revision = done, revision
		case h.conflict(err):
			o.state = conflict
		}
		h.log("%s writes %s at revision %d: %v", lease, word, revision, err)
		h.mu.Unlock()
		if err == nil || !h.conflict(err) {
			return
		}
	}
}

// commit is what a deed writes upon what is stored now.
func (h *writers) commit(s Store, lease string, d deed) (c model.Commit) {
	for _, name := range d.names {
		r := model.Record{Ref: model.Ref{Kind: kind, Key: model.Key{Source: written, Name: name}}}
		stored, there := s.Get(r.Ref)
		r.UID, r.Revision = stored.UID, stored.Revision
		if d.kind != appends && !there || d.kind == sweeps && stored.Lease == lease {
			continue
		}
		before, _ := stored.Spec.(model.Opaque)
		r.Spec = before
		c.Writes = append(c.Writes, model.Write{Record: r, Delete: d.kind != appends})
	}
	return c
}

// enter gives a write the word that it adds to each record.
func (h *writers) enter(c model.Commit) (string, *outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.number++
	word := fmt.Sprint("w", h.number)
	if c.Writes[0].Delete {
		word = "-" + word
	}
	for i := range c.Writes {
		before, _ := c.Writes[i].Record.Spec.(model.Opaque)
		c.Writes[i].Record.Spec = model.Opaque{Content: strings.TrimSpace(before.Content + " " + word)}
	}
	o := &outcome{}
	h.outcomes[word] = o
	return word, o
}

func (h *writers) note(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log(format, args...)
}

// follow keeps the batches of a watch.
func (h *writers) follow(ctx context.Context, s Store) {
	for b, err := range s.WatchFrom(ctx, model.Filter{Source: written}, model.Start{}) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				h.note("the watch ended: %v", err)
			}
			return
		}
		h.mu.Lock()
		h.batches = append(h.batches, b)
		h.mu.Unlock()
	}
}

// unauthorizedDeletes has everybody who may not delete records of a written source try.
func unauthorizedDeletes(ctx context.Context, t *rapid.T, shared Shared) {
	d := &diary{}
	s := shared.Process(ctx)
	synctest.Wait()
	w, err := source.NewWritten(written, s, source.WrittenConfig{Lease: "gone"})
	if err != nil {
		d.violated("%v", err)
	}
	var want []string
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 3, rapid.ID).Draw(t, "records") {
		r := model.Record{Ref: model.Ref{Kind: kind, Key: model.Key{Name: name}}, Spec: model.Opaque{Content: "kept"}}
		if _, err := w.Write(ctx, model.Commit{Writes: []model.Write{{Record: r}}}); err != nil {
			d.violated("%v", err)
		}
		want = append(want, name)
	}
	slices.Sort(want)
	other := shared.Process(ctx)
	synctest.Wait()
	for _, intruder := range []func(context.Context, *diary, Store){removal, otherWriter, listedSource, late} {
		intruder(ctx, d, other)
		synctest.Wait()
		var got []string
		for r := range s.List(model.Filter{Source: written, Kind: kind}) {
			got = append(got, r.Name)
		}
		if !slices.Equal(got, want) {
			d.violated("%q are stored of %q", got, want)
		}
	}
}
