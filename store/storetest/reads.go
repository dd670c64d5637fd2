package storetest

import (
	"slices"
	"sync"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/store"
)

// monotonicReads looks up each record of a watch at once, while a writer is at work.
// At first nothing is deleted, so every delivered record must be found.
func monotonicReads(t *testing.T, s Store) {
	t.Helper()
	const keys, rounds = 5, 30
	var writer sync.WaitGroup
	defer writer.Wait()
	write := func(n int, of func(i int) model.Write) {
		writer.Go(func() {
			for i := range n {
				if _, err := s.Commit(t.Context(), model.Commit{Writes: []model.Write{of(i)}}); err != nil {
					t.Errorf("commit: %v", err)
				}
			}
		})
	}
	r := watch(t, s, model.Filter{})
	r.prime()
	write(keys*rounds, func(i int) model.Write { return based(s, saying(nth(i%keys), i)) })
	for range keys * rounds {
		sent := r.read().Events[0].(model.Upsert).Record
		if got := get(t, s, sent.Ref); got.Revision < sent.Revision {
			t.Fatalf("notified of %s at revision %d, then got %d", sent.Ref, sent.Revision, got.Revision)
		}
		if got, ok := listed(t, s, model.Filter{})[sent.Ref]; !ok || got.Revision < sent.Revision {
			t.Fatalf("notified of %s at revision %d, then listed %d", sent.Ref, sent.Revision, got.Revision)
		}
	}
	write(keys, func(i int) model.Write { return removal(s, nth(i)) })
	for range keys {
		sent := r.read().Events[0].(model.Delete).Record
		if got, ok := s.Get(sent.Ref); ok {
			t.Fatalf("notified that %s is gone, then got it at revision %d", sent.Ref, got.Revision)
		}
		if _, ok := listed(t, s, model.Filter{})[sent.Ref]; ok {
			t.Fatalf("notified that %s is gone, then listed it", sent.Ref)
		}
	}
}

func deleteCarriesRecord(t *testing.T, s Store) {
	t.Helper()
	put(t, s, saying(web, 1), saying(web1, 1))
	put(t, s, saying(web, 2))
	last := get(t, s, web)
	r := watch(t, s, model.Filter{Kind: model.KindService}).prime()
	revision := drop(t, s, web, web1)
	b := r.read()
	d, ok := b.Events[0].(model.Delete)
	if len(b.Events) != 1 || !ok || d.Revision != revision || !same(d.Record, last) {
		t.Errorf("got %+v, want one delete at revision %d of %+v", b.Events, revision, last)
	}
}

func newLife(t *testing.T, s Store) {
	t.Helper()
	r := watch(t, s, model.Filter{}).prime()
	seen := map[model.UID]bool{}
	for life := range 3 {
		put(t, s, saying(web, 1))
		put(t, s, saying(web, 2))
		got := get(t, s, web)
		if (got.UID == model.UID{}) || seen[got.UID] || got.Generation != 2 {
			t.Errorf("life %d: uid %s, generation %d; want a new uid, generation 2", life, got.UID, got.Generation)
		}
		seen[got.UID] = true
		r.readTo(drop(t, s, web))
	}
	put(t, s, saying(web, 3))
	old := get(t, s, web)
	drop(t, s, web)
	if c := conflict(t, s, model.Write{Record: old}); c.Reason != store.ReasonMissing {
		t.Errorf("a write to a life that ended: %v", c)
	}
	r.readTo(put(t, s, saying(web, 9))) // The view rejects the uid of a life that ended.
}

// noWayIn changes every value that the store returned or was given, and expects the
// store to be unaffected.
func noWayIn(t *testing.T, s Store) {
	t.Helper()
	hosts := []string{"web.example"}
	content := []byte("content")
	writes := []model.Write{
		{Record: model.Record{Ref: web, Spec: model.Service{Hosts: model.ListOf(hosts...)}}},
		{Record: model.Record{Ref: note, Spec: model.OpaqueOf(content)}},
	}
	first, second := watch(t, s, model.Filter{}).prime(), watch(t, s, model.Filter{}).prime()
	commit(t, s, writes...)
	want := listed(t, s, model.Filter{})

	hosts[0], content[0] = "evil.example", 'X'
	clear(writes)
	got := get(t, s, web)
	got.Spec.(model.Service).Hosts.Slice()[0] = "evil.example"
	got.Owner, got.Spec = web1, model.SourceMark{}
	clear(first.read().Events)
	second.read()
	mustEqual(t, "watch, after another reader erased its batch", second.held, want)

	for b := range s.Watch(t.Context(), model.Filter{}) {
		clear(b.Events)
		break
	}
	mustEqual(t, "snapshot, after another reader erased its own", snapshot(t, s, model.Filter{}).held, want)
	mustEqual(t, "list", listed(t, s, model.Filter{}), want)
	hostsNow := get(t, s, web).Spec.(model.Service).Hosts
	if !slices.Equal(hostsNow.Slice(), []string{"web.example"}) {
		t.Errorf("the hosts became %v", hostsNow)
	}
	rejected(t, s, based(s, model.Record{Ref: web, Spec: &model.Service{}}))
}

// keptBatches folds a watch only after all of its batches were read.
func keptBatches(t *testing.T, s Store) {
	t.Helper()
	l := fill(t, s, many)
	var kept []model.Batch
	commits, primed := 0, false
	for b, err := range s.Watch(t.Context(), model.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, b)
		_, ended := b.Events[len(b.Events)-1].(model.EndOfSnapshot)
		if primed = primed || ended; !primed {
			continue
		}
		if commits++; commits > 10 {
			break
		}
		alter(t, s, l, 2*commits)
	}
	v := newView()
	for _, b := range kept {
		if err := v.apply(b); err != nil {
			t.Fatalf("%v\nin batch %+v", err, b)
		}
	}
	moments := l.moments()
	mustMatch(t, "watch, folded later", v.held, moments[len(moments)-1].records)
}
