package storetest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/store"
)

// brokenFeed feeds commits that no store can have made after what is held.
func brokenFeed(t *testing.T, s *supply) {
	t.Helper()
	s.reset(t, model.At{Epoch: 1, Revision: 10}, saying(web, 1))
	r := watch(t, s.replica, model.Filter{}).prime()
	next := model.At{Epoch: 1, Revision: 11}
	upsert := func(change func(*model.Record)) []model.Event {
		good, bad := s.stored(saying(note, 1), 11), s.stored(saying(web, 2), 11)
		change(&bad)
		return []model.Event{model.Upsert{Record: good}, model.Upsert{Record: bad}}
	}
	for what, events := range map[string][]model.Event{
		"nothing":                  nil,
		"a delete of nothing":      {model.Delete{Record: model.Record{Ref: web1}, Revision: 11}},
		"a reset":                  {model.Reset{Reason: "no event of a commit"}},
		"the end of a snapshot":    {model.EndOfSnapshot{Revision: 11, Epoch: 1}},
		"one record twice":         append(upsert(func(*model.Record) {}), model.Delete{Record: model.Record{Ref: web}}),
		"no uid":                   upsert(func(r *model.Record) { r.UID = model.UID{} }),
		"no generation":            upsert(func(r *model.Record) { r.Generation = 0 }),
		"the generation it has":    upsert(func(r *model.Record) { r.Generation-- }),
		"the revision it has":      upsert(func(r *model.Record) { r.Revision = 10 }),
		"a revision to come":       upsert(func(r *model.Record) { r.Revision = 12 }),
		"no source":                upsert(func(r *model.Record) { r.Source = "" }),
		"no specification":         upsert(func(r *model.Record) { r.Spec = nil }),
		"a pointer for a spec":     upsert(func(r *model.Record) { r.Spec = &model.Service{} }),
		"an event that is nothing": {nil},
	} {
		var invalid *store.InvalidError
		if err := s.feed.Apply(store.Decided{At: next, Events: events}); !errors.As(err, &invalid) {
			t.Errorf("%s: error %v, want one that says what is invalid", what, err)
		}
		s.mustBeUnchanged(t, model.At{Epoch: 1, Revision: 10})
	}
	s.apply(t, s.put(next, saying(web, 3)))
	if r.read(); r.revision != 11 || r.resets > 0 {
		t.Errorf("after a broken feed a watcher is notified of revision %d, with %d resets", r.revision, r.resets)
	}
}

// replacedFeed breaks one feed off and starts another, with a past of its own.
func replacedFeed(t *testing.T, s *supply) {
	t.Helper()
	first := model.At{Epoch: 8, Revision: 500}
	s.reset(t, first, saying(web, 1), saying(web1, 1))
	live, behind, left := watch(t, s.replica, model.Filter{}).prime(), watch(t, s.replica, model.Filter{}).prime(), snapshot(t, s.replica, model.Filter{})
	lost := s.put(model.At{Epoch: 8, Revision: 501}, saying(web2, 1))
	s.apply(t, lost)
	live.read()
	late := s.put(model.At{Epoch: 8, Revision: 502}, saying(note, 1))

	second := model.At{Epoch: 3, Revision: 20} // Epochs are names: they need not grow.
	s.reset(t, second, saying(web, 7))
	s.mustReject(t, late)
	s.apply(t, s.put(model.At{Epoch: 3, Revision: 21}, saying(web1, 8)))
	returned, stop := resume(t, t, s.replica, model.Filter{}, left)
	defer stop()
	for name, r := range map[string]*reader{"up to date": live, "behind": behind, "that returns": returned} {
		for r.epoch != 3 || r.revision < 21 {
			if reset, ok := r.read().Events[0].(model.Reset); ok && reset.Reason == "" {
				t.Errorf("a reader %s is reset without a reason", name)
			}
		}
		if r.resets != 1 {
			t.Errorf("a reader %s was reset %d times, want once", name, r.resets)
		}
		mustEqual(t, "what a reader "+name+" holds", r.held, s.want)
	}
}

// lostPlace resets in the same epoch: what happened in between is not known,
// and nothing that readers know is wrong.
func lostPlace(t *testing.T, s *supply) {
	t.Helper()
	s.reset(t, model.At{Epoch: 2, Revision: 10}, saying(web, 1), saying(web1, 1))
	old := snapshot(t, s.replica, model.Filter{})
	live := watch(t, s.replica, model.Filter{}).prime()
	delete(s.want, web1)
	s.want[web] = s.stored(saying(web, 2), 15)
	s.want[note] = s.stored(saying(note, 2), 17)
	s.replace(t, model.At{Epoch: 2, Revision: 20})
	now := snapshot(t, s.replica, model.Filter{})
	s.apply(t, s.put(model.At{Epoch: 2, Revision: 25}, saying(web2, 3)))

	early, stop := resume(t, t, s.replica, model.Filter{}, old)
	defer stop()
	onTime, stop := resume(t, t, s.replica, model.Filter{}, now)
	defer stop()
	for name, r := range map[string]*reader{"that stayed": live, "from before": early, "from after": onTime} {
		r.read()
		r.prime()
		r.readTo(25)
		mustEqual(t, "what a reader "+name+" holds", r.held, s.want)
	}
	if live.resets != 1 || early.resets != 1 || onTime.resets != 0 {
		t.Errorf("the readers were reset %d, %d and %d times, want 1, 1 and 0", live.resets, early.resets, onTime.resets)
	}
}

func brokenState(t *testing.T, s *supply) {
	t.Helper()
	now := model.At{Epoch: 1, Revision: 5}
	s.reset(t, now, saying(web, 1))
	good := s.want[web]
	future, unnamed := good, good
	future.Revision, unnamed.Name = 8, ""
	for what, all := range map[string][]model.Record{"twice": {good, good}, "of the future": {good, future}, "no name": {unnamed}} {
		var invalid *store.InvalidError
		if err := s.feed.Reset(model.At{Epoch: 1, Revision: 7}, "no reason", slices.Values(all)); !errors.As(err, &invalid) {
			t.Errorf("%s: error %v, want one that says which record is invalid", what, err)
		}
		s.mustBeUnchanged(t, now)
	}
}

func notOlderOverGaps(t *testing.T, s *supply) {
	t.Helper()
	s.reset(t, model.At{Epoch: 1, Revision: 5})
	wanted := model.Start{NotOlderThan: model.At{Epoch: 1, Revision: 12}}
	s.apply(t, s.put(model.At{Epoch: 1, Revision: 11}, saying(web, 1)))
	endsUnseen(t, s.replica, wanted, func() { t.Error("a watch shows what is older than it was asked for") })
	first := make(chan model.At, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		first <- firstEnd(s.replica.WatchFrom(ctx, model.Filter{}, wanted))
	}()
	s.apply(t, s.put(model.At{Epoch: 1, Revision: 30}, saying(web, 2)))
	if got := <-first; got != (model.At{Epoch: 1, Revision: 30}) {
		t.Errorf("a watch not older than 12 shows %+v, want revision 30", got)
	}
}
