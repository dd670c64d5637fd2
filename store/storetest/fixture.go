package storetest

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/store"
)

// kindNote is a kind that no Isthmus knows.
const kindNote model.Kind = "Note"

func ref(kind model.Kind, source, namespace, name string) model.Ref {
	return model.Ref{Kind: kind, Key: model.Key{Source: source, Namespace: namespace, Name: name}}
}

// web and friends are the records of tests that need only a few.
var (
	web  = ref(model.KindService, "files", "default", "web")
	web1 = ref(model.KindEndpoint, "files", "default", "web/1")
	web2 = ref(model.KindEndpoint, "files", "default", "web/2")
	note = ref(kindNote, "files", "", "web")
)

// saying returns a record with content that depends on n.
func saying(ref model.Ref, n int) model.Record {
	r := model.Record{Ref: ref, Place: "shop.yaml"}
	switch ref.Kind {
	case model.KindService:
		r.Spec = model.Service{Hosts: model.ListOf(fmt.Sprintf("v%d.example", n)), Resolution: model.ResolutionStatic}
	case model.KindEndpoint:
		r.Owner = web
		r.Spec = model.Endpoint{Address: "10.0.0.1", Weight: uint32(n)}
	default:
		r.Spec = model.Opaque{Content: strconv.Itoa(n)}
	}
	return r
}

// based returns r as a write based on the record that s holds now.
func based(s Store, r model.Record) model.Write {
	stored, _ := s.Get(r.Ref)
	r.UID, r.Revision = stored.UID, stored.Revision
	return model.Write{Record: r}
}

// removal returns the write that deletes the record that s holds now.
func removal(s Store, ref model.Ref) model.Write {
	w := based(s, model.Record{Ref: ref})
	w.Delete = true
	return w
}

func commit(t *testing.T, s Store, writes ...model.Write) uint64 {
	t.Helper()
	revision, err := s.Commit(t.Context(), model.Commit{Writes: writes})
	if err != nil {
		t.Fatalf("commit: %v", err)
	}
	return revision
}

// put stores records, whichever versions are stored now.
func put(t *testing.T, s Store, records ...model.Record) uint64 {
	t.Helper()
	writes := make([]model.Write, len(records))
	for i, r := range records {
		writes[i] = based(s, r)
	}
	return commit(t, s, writes...)
}

// drop deletes records.
func drop(t *testing.T, s Store, refs ...model.Ref) uint64 {
	t.Helper()
	writes := make([]model.Write, len(refs))
	for i, ref := range refs {
		writes[i] = removal(s, ref)
	}
	return commit(t, s, writes...)
}

func get(t *testing.T, s Store, ref model.Ref) model.Record {
	t.Helper()
	r, ok := s.Get(ref)
	if !ok {
		t.Fatalf("%s is not stored", ref)
	}
	return r
}

// rejected commits writes that must fail and returns the error.
func rejected(t *testing.T, s Store, writes ...model.Write) error {
	t.Helper()
	before := snapshot(t, s, model.Filter{})
	revision, err := s.Commit(t.Context(), model.Commit{Writes: writes})
	if err == nil {
		t.Fatalf("committed at revision %d: %+v", revision, writes)
	}
	after := snapshot(t, s, model.Filter{})
	mustEqual(t, "a rejected commit changed the store", after.held, before.held)
	if after.revision != before.revision {
		t.Fatalf("a rejected commit took revision %d", after.revision)
	}
	return err
}

// conflict is [rejected] with a conflict, which it returns.
func conflict(t *testing.T, s Store, writes ...model.Write) *store.ConflictError {
	t.Helper()
	err := rejected(t, s, writes...)
	var c *store.ConflictError
	if !errors.As(err, &c) {
		t.Fatalf("got error %v, want a conflict", err)
	}
	return c
}
