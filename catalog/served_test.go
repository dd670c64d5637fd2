package catalog

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
)

// The index forgets workloads that are gone.
func TestIndexOfWorkloadsForgetsThoseThatAreGone(t *testing.T) {
	t.Parallel()
	key := model.Key{Source: "a", Namespace: "x", Name: "s"}
	owner := model.Ref{Kind: model.KindService, Key: key}
	at := model.Ref{Kind: model.KindEndpoint, Key: key}
	at.Name = "s/1"
	put := func(ref, owner model.Ref, spec model.Spec) model.Event {
		return model.Upsert{Record: model.Record{Ref: ref, Owner: owner, Spec: spec}}
	}
	b := NewBuilder(nil)
	b.Apply(1, []model.Event{
		put(owner, model.Ref{}, model.Service{
			Hosts: model.ListOf("h"), Ports: model.ListOf(model.Port{Number: 80, Name: "http"}), Resolution: model.ResolutionStatic,
		}),
		put(at, owner, model.Endpoint{Address: "FD00::1"}),
	})
	if n := b.Snapshot().served.Len(); n != 1 {
		t.Fatalf("the index has %d entries", n)
	}
	b.Apply(2, []model.Event{model.Delete{Record: model.Record{Ref: at, Owner: owner}}})
	if n := b.Snapshot().served.Len(); n != 0 {
		t.Errorf("the index has %d entries of workloads that are gone", n)
	}
}
