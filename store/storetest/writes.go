package storetest

import (
	"errors"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/store"
)

func equalContent(t *testing.T, s Store) {
	t.Helper()
	revision := put(t, s, saying(web, 1), saying(web1, 1))
	want := listed(t, s, model.Filter{})
	r := watch(t, s, model.Filter{}).prime()
	for what, again := range map[string]uint64{
		"the same record":      put(t, s, saying(web, 1)),
		"the same two records": put(t, s, saying(web1, 1), saying(web, 1)),
		"nothing":              put(t, s),
		"a delete of nothing":  commit(t, s, model.Write{Record: model.Record{Ref: note}, Delete: true}),
	} {
		if again != revision {
			t.Errorf("writing %s gave revision %d, want still %d", what, again, revision)
		}
	}
	mustEqual(t, "list", listed(t, s, model.Filter{}), want)

	next := put(t, s, saying(web, 1), saying(web1, 2))
	if b := r.read(); len(b.Events) != 1 || r.revision != next {
		t.Errorf("given %+v, want one upsert of %s at revision %d", b.Events, web1, next)
	}
	if got := get(t, s, web); !same(got, want[web]) {
		t.Errorf("a record that was written unchanged became %+v, want %+v", got, want[web])
	}
}

func compareAndSet(t *testing.T, s Store) {
	t.Helper()
	put(t, s, saying(web, 1))
	superseded := get(t, s, web).Revision
	put(t, s, saying(web, 2))
	now := get(t, s, web)
	other := model.UID{1, 2, 3}
	for _, c := range []struct {
		what     string
		ref      model.Ref
		uid      model.UID
		revision uint64
		delete   bool
		reason   store.Reason
	}{
		{"create what is there", web, model.UID{}, 0, false, store.ReasonExists},
		{"update with a uid and no revision", web, now.UID, 0, false, store.ReasonExists},
		{"update a superseded revision", web, model.UID{}, superseded, false, store.ReasonSuperseded},
		{"update a superseded revision of this life", web, now.UID, superseded, false, store.ReasonSuperseded},
		{"update a revision to come", web, now.UID, now.Revision + 1, false, store.ReasonSuperseded},
		{"update another life", web, other, now.Revision, false, store.ReasonOtherLife},
		{"update a superseded revision of another life", web, other, superseded, false, store.ReasonOtherLife},
		{"update no revision of another life", web, other, 0, false, store.ReasonOtherLife},
		{"create with a revision", note, model.UID{}, now.Revision, false, store.ReasonMissing},
		{"create with a uid", note, other, 0, false, store.ReasonMissing},
		{"delete without a revision", web, model.UID{}, 0, true, store.ReasonExists},
		{"delete a superseded revision", web, model.UID{}, superseded, true, store.ReasonSuperseded},
		{"delete another life", web, other, now.Revision, true, store.ReasonOtherLife},
		{"delete a superseded revision of another life", web, other, superseded, true, store.ReasonOtherLife},
		{"delete what is not there", note, model.UID{}, now.Revision, true, store.ReasonMissing},
	} {
		w := model.Write{Record: saying(c.ref, 3), Delete: c.delete}
		w.Record.UID, w.Record.Revision = c.uid, c.revision
		got := conflict(t, s, w)
		stored, _ := s.Get(c.ref)
		if got.Reason != c.reason || got.Ref != c.ref || got.Wanted != (store.Version{UID: c.uid, Revision: c.revision}) ||
			got.Stored != (store.Version{UID: stored.UID, Revision: stored.Revision}) {
			t.Errorf("%s: got %+v, want reason %q, stored %d", c.what, got, c.reason, stored.Revision)
		}
	}
	w := model.Write{Record: saying(web, 3)} // No uid: any life will do.
	w.Record.Revision = now.Revision
	commit(t, s, w)
	commit(t, s, model.Write{Record: model.Record{Ref: web, Revision: get(t, s, web).Revision}, Delete: true})
	if got, ok := s.Get(web); ok {
		t.Errorf("after its delete there is %+v", got)
	}
}

func allOrNothing(t *testing.T, s Store) {
	t.Helper()
	put(t, s, saying(web, 1))
	r := watch(t, s, model.Filter{}).prime()
	c := conflict(t, s, based(s, saying(web, 2)), model.Write{Record: saying(web1, 1)}, model.Write{Record: saying(note, 1), Delete: true},
		model.Write{Record: model.Record{Ref: web2, Revision: 1}, Delete: true})
	if c.Ref != web2 {
		t.Errorf("the conflict is of %s, want %s", c.Ref, web2)
	}
	revision := commit(t, s, based(s, saying(web, 2)), model.Write{Record: saying(web1, 1)}, model.Write{Record: saying(note, 1)})
	if b := r.read(); len(b.Events) != 3 || r.revision != revision {
		t.Errorf("given %d events of revision %d, want 3 of %d", len(b.Events), r.revision, revision)
	}
	for _, ref := range []model.Ref{web, web1, note} {
		if got := get(t, s, ref); got.Revision != revision {
			t.Errorf("%s is at revision %d, want that of its commit, %d", ref, got.Revision, revision)
		}
	}
}

func rejectedWrites(t *testing.T, s Store) {
	t.Helper()
	put(t, s, saying(web, 1))
	good := saying(note, 1)
	nothing := good
	nothing.Spec = nil
	for what, writes := range map[string][]model.Write{
		"no specification":   {{Record: nothing}},
		"no kind":            {{Record: saying(ref("", "files", "default", "web"), 1)}},
		"no source":          {{Record: saying(ref(kindNote, "", "default", "web"), 1)}},
		"no name":            {{Record: saying(ref(kindNote, "files", "default", ""), 1)}},
		"delete of no name":  {{Record: model.Record{Ref: ref(kindNote, "files", "default", "")}, Delete: true}},
		"one record twice":   {{Record: good}, {Record: good}},
		"change and delete":  {based(s, saying(web, 2)), removal(s, web)},
		"delete and create":  {removal(s, web), {Record: saying(web, 2)}},
		"a pointer for spec": {{Record: model.Record{Ref: note, Spec: &model.Opaque{}}}},
	} {
		err := rejected(t, s, writes...)
		var invalid *store.InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), invalid.Ref.String()) {
			t.Errorf("%s: got %v, want an error that says which write is invalid", what, err)
		}
	}
}
