package storetest

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/store"
)

// anyFeed draws what a feed does and who reads meanwhile. After each step every
// reader holds what the replica must hold, and was notified of nothing twice: its
// view rejects that.
func anyFeed(t *testing.T, open func(t *testing.T) (Replica, Feed)) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		h := &feeding{t: t, rt: rt, supply: newSupply(open(t)), readers: map[*reader]model.Filter{}}
		h.now = model.At{Epoch: rapid.Uint64Min(1).Draw(rt, "epoch"), Revision: rapid.Uint64Range(0, 9).Draw(rt, "revision")}
		h.reset(rt, h.now)
		f := anyFilter().Draw(rt, "filter")
		left := snapshot(t, h.replica, f)
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			if rapid.IntRange(0, 2).Draw(rt, "watch") == 0 {
				h.watch()
			}
			h.step()
			h.catchUp()
			if rapid.IntRange(0, 3).Draw(rt, "return") == 0 {
				h.comeBack(f, left)
			}
		}
		h.comeBack(f, left)
		h.catchUp()
	})
}

// feeding is one history of a feed.
type feeding struct {
	*supply
	t       *testing.T
	rt      *rapid.T
	now     model.At
	past    []store.Decided
	readers map[*reader]model.Filter
}

func (h *feeding) watch() {
	f := anyFilter().Draw(h.rt, "filter")
	r, stop := watchUntil(h.t, h.rt, h.replica, f)
	h.rt.Cleanup(stop)
	h.readers[r.prime()] = f
}

func (h *feeding) step() {
	switch rapid.SampledFrom([]string{"commit", "commit", "commit", "commit", "repeat", "lose the place", "replace"}).Draw(h.rt, "step") {
	case "commit":
		h.commit()
	case "repeat":
		for _, d := range h.past {
			h.mustReject(h.rt, d)
		}
	case "lose the place":
		if missed := rapid.Uint64Range(0, 5).Draw(h.rt, "missed"); missed > 0 { // one moment has one state
			h.now.Revision += missed
			h.lose()
		}
		h.replace(h.rt, h.now)
	case "replace":
		h.now = model.At{Epoch: h.now.Epoch%1000 + 1, Revision: rapid.Uint64Range(1, 9).Draw(h.rt, "revision")}
		h.want, h.past = set{}, nil
		h.lose()
		h.replace(h.rt, h.now)
	}
}

// lose changes what must be held without a commit.
func (h *feeding) lose() {
	for _, r := range rapid.SliceOfN(anyRef(), 0, 3).Draw(h.rt, "changed") {
		switch _, ok := h.want[r]; {
		case ok && rapid.Bool().Draw(h.rt, "deleted"):
			delete(h.want, r)
		case h.now.Revision > 0:
			h.want[r] = h.stored(saying(r, int(h.now.Revision)), h.now.Revision)
		}
	}
}

func (h *feeding) commit() {
	h.now.Revision += rapid.Uint64Range(1, 4).Draw(h.rt, "gap")
	d := store.Decided{At: h.now}
	for _, i := range anyMove().Draw(h.rt, "move") {
		if _, ok := h.want[i.ref]; ok && i.what == doDrop {
			d.Events = append(d.Events, h.drop(h.now, i.ref).Events...)
		} else {
			d.Events = append(d.Events, h.put(h.now, saying(i.ref, int(h.now.Revision))).Events...)
		}
	}
	h.apply(h.rt, d)
	h.past = append(h.past, d)
}

// catchUp has every reader read until it holds what it must.
func (h *feeding) catchUp() {
	for r, f := range h.readers {
		for r.epoch != h.now.Epoch || !maps.EqualFunc(r.held, h.seen(f), same) {
			r.read()
		}
		mustEqual(h.rt, "watch", r.held, h.seen(f))
		mustEqual(h.rt, "list", listed(h.rt, h.replica, f), h.seen(f))
	}
}

func (h *feeding) seen(f model.Filter) set { return moment{records: h.want}.seen(f) }

// comeBack resumes a view, reads all there is and leaves again.
func (h *feeding) comeBack(f model.Filter, v *view) {
	h.now.Revision++
	marker := h.put(h.now, saying(markerOf(f), int(h.now.Revision)))
	h.past = slices.Clip(append(h.past, marker))
	h.apply(h.rt, marker)
	r, stop := resume(h.t, h.rt, h.replica, f, v)
	defer stop()
	for !r.primed || r.epoch != h.now.Epoch || r.revision < h.now.Revision {
		r.read()
	}
	mustEqual(h.rt, "what is held on coming back", r.held, h.seen(f))
}
