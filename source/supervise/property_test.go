package supervise_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/source/supervise"
)

// TestStoreHoldsTheLastGoodOfEach is the law of the supervisor: whatever a
// registry says, however it fails, and whoever else writes, the store holds
// the last good version of every object the registry has not let go, and of
// those it has let go all at once until it has said so often enough.
func TestStoreHoldsTheLastGoodOfEach(t *testing.T) {
	for name, hold := range map[string]hold.Config{
		"never held":   {Share: 1, Min: 1000, For: time.Minute},
		"often held":   {Share: 0.5, Min: 2, For: time.Minute},
		"services":     {Share: 1, Min: 1, For: time.Minute},
		"no tolerance": {For: time.Minute},
		"waves":        {Share: 0.5, Min: 4, For: time.Minute},
		"edited":       {Share: 0.75, Min: 2, For: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				h := history{
					steps: rapid.SliceOfN(rapid.Custom(drawStep), 1, 12).Draw(r, "steps"),
					first: rapid.Custom(drawListing).Draw(r, "first"),
					hold:  hold, edited: name == "edited", store: newLedger(), want: newReference(hold, name == "edited"),
				}
				if rapid.Bool().Draw(r, "crowded") {
					h.crowd()
				}
				synctest.Test(t, func(*testing.T) { h.run() })
				if h.wrong != "" {
					r.Fatal(h.wrong)
				}
			})
		})
	}
}

// crowd adds a service of many endpoints to every full listing, beside which a
// small reading is looked up and not swept for.
func (h *history) crowd() {
	far := service("far", "far", crowd(300)...)
	h.first.Objects = append(h.first.Objects, far)
	for _, s := range h.steps {
		if s.Listing != nil && s.Listing.Places == nil {
			s.Listing.Objects = append(s.Listing.Objects, far)
		}
	}
}

// step is one thing that happens to a source.
type step struct {
	Listing  *model.Listing
	Change   *model.Change
	Fails    bool // the run ends with an error
	Panics   bool
	Release  bool          // an operator releases what is held
	Restart  bool          // a new process takes over the store
	Delta    bool          // Change is of single endpoints
	Again    bool          // the last full listing comes once more
	Wave     *wave         // it does, and lacks some endpoints or has others
	Wait     time.Duration // before it
	Rejected int           // commits the store rejects from here on
	Touched  bool          // somebody else writes between comparison and commit
}

func (s step) String() string {
	text := fmt.Sprintf("%s later, touched %t, %d commits rejected: ", s.Wait, s.Touched, s.Rejected)
	switch {
	case s.Listing != nil:
		text += fmt.Sprintf("list %q (everything: %t), removed %q, again %t", s.Listing.Places, s.Listing.Places == nil, s.Listing.Removed, s.Again)
		return text + partsOf(s.Listing.Objects, s.Listing.Rejected)
	case s.Change != nil:
		text += fmt.Sprintf("change, without %v, with %v, without %v", s.Change.Deletes, s.Change.OwnedUpserts, s.Change.OwnedDeletes)
		return text + partsOf(s.Change.Upserts, s.Change.Rejected)
	}
	return text + fmt.Sprintf("fails %t panics %t released %t restarted %t", s.Fails, s.Panics, s.Release, s.Restart)
}

func partsOf(objects []model.Object, rejected []model.Rejection) (text string) {
	for _, o := range objects {
		text += fmt.Sprintf("; %s in %q:", o.Record.Name, o.Record.Place)
		for _, rec := range o.Owned {
			text += " " + rec.Name
		}
	}
	for _, f := range rejected {
		text += fmt.Sprintf("; rejected %q in %q of %q", f.Ref.Name, f.Place, f.Namespace)
	}
	return text
}

// history is a source that takes its steps one after the other, over as many
// runs as it needs, and compares the store with the reference after each.
type history struct {
	steps  []step
	first  model.Listing
	last   model.Listing // full
	hold   hold.Config
	edited bool
	store  *ledger
	super  *supervise.Supervisor
	want   *reference
	wrong  string
	log    []string // the steps so far
	ended  bool
	stop   context.CancelFunc
}

func (h *history) run() {
	for !h.ended && h.wrong == "" {
		h.runProcess()
		h.want.restart()
	}
	if len(h.store.noops) > 0 && h.wrong == "" {
		h.wrong = fmt.Sprintf("writes that change nothing: %v", h.store.noops)
	}
}

// runProcess runs the source until all is over, or another process takes over.
func (h *history) runProcess() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	h.stop = cancel
	h.super = supervise.New("reg", h, h.store, supervise.Config{Hold: h.hold, Edited: h.edited, MinBackoff: 1, MaxBackoff: 1})
	err := h.super.Run(ctx)
	switch {
	case h.wrong != "":
		return
	case err != nil:
		h.wrong = err.Error()
	}
	h.checkStatus(h.super.Status())
}

func (h *history) checkStatus(st source.Status) {
	counts, holds := map[model.Kind]int{}, heldIn(h.store)
	for rec := range h.store.List(model.Filter{}) {
		counts[rec.Kind]++
		if _, held := holds.Of(rec.Ref, rec.Owner); held {
			counts["held"]++
		}
	}
	if st.Services != counts[model.KindService] || st.Endpoints != counts[model.KindEndpoint] || st.Held != counts["held"] {
		h.wrong = fmt.Sprintf("counts %d services, %d endpoints and %d held, but %v are stored",
			st.Services, st.Endpoints, st.Held, counts)
	}
}

func (h *history) Run(ctx context.Context, sink source.Sink) error {
	if err := h.take(ctx, sink, step{Listing: &h.first}); err != nil {
		return err
	}
	for len(h.steps) > 0 && h.wrong == "" {
		next := h.steps[0]
		h.steps = h.steps[1:]
		if err := h.take(ctx, sink, next); err != nil {
			return err
		}
	}
	h.ended = true
	h.stop()
	return ctx.Err()
}

func (h *history) take(ctx context.Context, sink source.Sink, s step) error {
	h.store.reject = s.Rejected
	h.store.before = func(c model.Commit) {
		time.Sleep(time.Nanosecond) // a commit takes time
		h.interfere(s.Touched, c)
	}
	time.Sleep(s.Wait + 1) // no two steps are at one instant
	if s.Again {
		s.Listing = &h.last
	}
	if s.Wave != nil {
		s.Listing = s.Wave.over(h.last)
	}
	h.log = append(h.log, s.String())
	var err error
	switch {
	case s.Release:
		if _, failed := h.super.Release(ctx); failed == nil {
			h.want.release()
		}
	case s.Restart:
		h.stop()
		return ctx.Err()
	case s.Panics:
		panic("as drawn")
	case s.Fails:
		return errors.New("as drawn")
	case s.Listing != nil:
		if err = sink.Replace(ctx, *s.Listing); err == nil {
			h.want.replace(*s.Listing)
			if s.Listing.Places == nil {
				h.last = *s.Listing
			}
		}
	case s.Change != nil:
		if err = sink.Change(ctx, *s.Change); err == nil && s.Delta {
			h.want.delta(*s.Change)
		} else if err == nil {
			h.want.change(*s.Change)
		}
	}
	if diff := cmp.Diff(h.want.lines(), linesOf(h.store)); diff != "" && h.wrong == "" {
		h.wrong = fmt.Sprintf("after\n%s\nerror %v, gone %+v, had %+v (-want +got):\n%s", strings.Join(h.log, "\n"), err, h.want.gone, h.want.peaks, diff)
		h.stop()
	}
	return err
}

// interfere writes to the first record of a commit before the commit does, once.
// It leaves alone what would change the decision, not only the comparison: what
// somebody else created has survived. That counts for an endpoint, and for any
// record where nothing else survives. Nor does it create anything while something
// is held, of which it may be taken for a part: an object is held with all it owns;
// or while something goes, which a new object may explain.
func (h *history) interfere(wanted bool, c model.Commit) {
	h.store.before = nil
	if !wanted || h.store.reject > 0 {
		return
	}
	w := c.Writes[0]
	if have, ok := h.store.memory.Get(w.Record.Ref); ok {
		w.Record = have
	} else if w.Record.Kind == model.KindEndpoint || h.super.Status().Held > 0 ||
		slices.ContainsFunc(c.Writes, func(w model.Write) bool { return w.Delete || w.Record.Kind == model.KindHold }) {
		return
	}
	w.Record.Path, w.Delete = "somebody-else", false
	h.want.changed[w.Record.Name] = h.want.step // before the present one
	_, _ = h.store.memory.Commit(context.Background(), model.Commit{Writes: []model.Write{w}})
}

func drawStep(t *rapid.T) step {
	s := step{
		Touched: rapid.Bool().Draw(t, "touched"),
		Wait:    rapid.SampledFrom([]time.Duration{0, 2 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute}).Draw(t, "wait"),
	}
	if rapid.IntRange(0, 5).Draw(t, "away") == 0 {
		s.Rejected = rapid.IntRange(1, 5).Draw(t, "rejected commits")
	}
	switch rapid.IntRange(0, 24).Draw(t, "what") {
	case 18, 19, 20, 21, 22, 23, 24:
		s.Wave = drawWave(t)
	case 14:
		s.Restart = true
	case 15, 16, 17:
		s.Change, s.Delta = drawDelta(t), true
	case 0:
		s.Panics = true
	case 1:
		s.Fails = true
	case 2, 3:
		l := drawListing(t)
		s.Listing = &l
	case 9:
		s.Release = true
	case 10, 11, 12, 13:
		s.Again = true
	case 4, 5, 6:
		l := drawListing(t)
		l.Places = rapid.SliceOfNDistinct(rapid.SampledFrom(places), 0, 2, rapid.ID).Draw(t, "places")
		if l.Places == nil {
			l.Places = []string{}
		}
		if len(l.Places) == 2 && rapid.Bool().Draw(t, "removed") {
			l.Removed = l.Places[1:]
		}
		s.Listing = &l
	default:
		l := drawListing(t)
		s.Change = &model.Change{Upserts: l.Objects, Rejected: l.Rejected}
		for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 2).Draw(t, "deletes") {
			s.Change.Deletes = append(s.Change.Deletes, ref(model.KindService, name))
		}
	}
	return s
}

// wave is a change of a listing that leaves the services as they are: some of their
// endpoints go, and others come, in one of them or in all.
type wave struct {
	Goes  int // every such endpoint
	Comes []string
	Empty int // every such service has none any more, or is gone
}

func drawWave(t *rapid.T) *wave {
	return &wave{
		Goes:  rapid.IntRange(1, 5).Draw(t, "every"),
		Comes: rapid.SliceOfNDistinct(rapid.SampledFrom(addresses), 0, 2, rapid.ID).Draw(t, "come"),
		Empty: rapid.IntRange(1, 9).Draw(t, "empty"),
	}
}

func (w wave) over(l model.Listing) *model.Listing {
	next := model.Listing{}
	n := 0
	for i, o := range l.Objects {
		var owned []model.Record
		for _, rec := range o.Owned {
			if n++; n%w.Goes != 0 || w.Goes == 1 && n%2 == 0 {
				owned = append(owned, rec)
			}
		}
		if i%2 == 0 {
			for _, rec := range service(o.Record.Name, "", w.Comes...).Owned {
				if !slices.ContainsFunc(owned, func(had model.Record) bool { return had.Ref == rec.Ref }) {
					owned = append(owned, rec)
				}
			}
		}
		if o.Owned = owned; (i+1)%w.Empty == 0 && w.Empty > 3 {
			o.Owned = nil
		}
		if (i+1)%w.Empty != 0 || w.Empty > 2 {
			next.Objects = append(next.Objects, o)
		}
	}
	return &next
}

func drawDelta(t *rapid.T) *model.Change {
	c, address := &model.Change{}, rapid.SampledFrom(addresses)
	for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 3).Draw(t, "gone from") {
		c.OwnedDeletes = append(c.OwnedDeletes, ref(model.KindEndpoint, name+"/"+address.Draw(t, "gone")))
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 2, rapid.ID).Draw(t, "come to") {
		c.OwnedUpserts = append(c.OwnedUpserts, delta(name, address.Draw(t, "come"), rapid.Uint32Range(0, 2).Draw(t, "weight")))
	}
	return c
}

var (
	names  = []string{"a", "b", "c", "ab", "a/b"}
	places = []string{"", "f", "g"}

	addresses = []string{"1", "2", "3", "4", "5", "6"}
)

func drawListing(t *rapid.T) model.Listing {
	return model.Listing{
		Objects:  rapid.SliceOfN(rapid.Custom(drawObject), 0, 5).Draw(t, "objects"),
		Rejected: rapid.SliceOfN(rapid.Custom(drawRejection), 0, 2).Draw(t, "refused"),
	}
}

func drawObject(t *rapid.T) model.Object {
	name := rapid.SampledFrom(append(names, "")).Draw(t, "name")
	o := service(name, rapid.SampledFrom(places).Draw(t, "place"),
		rapid.SliceOfN(rapid.SampledFrom(addresses), 0, 5).Draw(t, "endpoints")...)
	o.Record.Spec = model.Service{Hosts: model.ListOf(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "host"))}
	for i := range o.Owned {
		o = weighed(o, i, rapid.Uint32Range(0, 2).Draw(t, "weight"))
	}
	return o
}

func drawRejection(t *rapid.T) model.Rejection {
	f := bad(rapid.SampledFrom(places).Draw(t, "place"),
		rapid.SampledFrom(append(names, "")).Draw(t, "name"),
		rapid.SampledFrom([]string{"bad", "worse"}).Draw(t, "reason"))
	if f.Ref == (model.Ref{}) {
		f.Namespace = rapid.SampledFrom([]string{"", "ns", "other"}).Draw(t, "namespace")
	}
	return f
}
