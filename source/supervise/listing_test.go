package supervise_test

import (
	"context"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
)

func TestFullListingBecomesTheStore(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", "", "1", "2"), service("b", "", "3"), workload("w", ""))
		b.holds("Endpoint ns/a/1", "Endpoint ns/a/2", "Endpoint ns/b/3", "Service ns/a", "Service ns/b", "Workload ns/w")
		b.list(service("a", "", "2", "4"), workload("w", ""))
		b.wrote("create Endpoint ns/a/4", "delete Endpoint ns/a/1", "delete Endpoint ns/b/3", "delete Service ns/b")
		b.holds("Endpoint ns/a/2", "Endpoint ns/a/4", "Service ns/a", "Workload ns/w")
		if st := b.Status(); st.Services != 1 || st.Endpoints != 3 {
			t.Errorf("status counts %d services and %d endpoints, want 1 and 3", st.Services, st.Endpoints)
		}
	})
}

func TestRecordsCarrySourcePathAndOwner(t *testing.T) {
	supervised(t, func(b *bridge) {
		foreign := workload("w", "")
		foreign.Record.Path = "afar,near"
		b.list(service("a", "f", "1"), foreign)
		owner := stored(model.KindService, "a")
		for rec := range b.store.List(model.Filter{Source: "reg"}) {
			if want := map[model.Kind]model.Path{model.KindWorkload: "afar,near"}[rec.Kind]; rec.Path != want {
				t.Errorf("%s has path %q, want %q", rec.Ref, rec.Path, want)
			}
			if (rec.Owner == owner) != (rec.Kind == model.KindEndpoint) {
				t.Errorf("%s has owner %s", rec.Ref, rec.Owner)
			}
		}
	})
}

func TestMarkComesWithTheFirstListing(t *testing.T) {
	for name, objects := range map[string][]model.Object{"filled": {service("a", "", "1")}, "empty": nil} {
		t.Run(name, func(t *testing.T) {
			supervised(t, func(b *bridge) {
				b.list(objects...)
				b.list(objects...)
				if len(b.store.commits) != 1 {
					t.Fatalf("%d commits, want one with everything", len(b.store.commits))
				}
				mark, ok := b.store.memory.Get(model.Ref{Kind: model.KindSource, Key: model.Key{Source: "reg", Name: "reg"}})
				if !ok || mark.Revision != 1 {
					t.Errorf("mark %v stored %t, want revision 1", mark.Ref, ok)
				}
				b.inState(source.StateLive)
			})
		})
	}
}

func TestOneEndpointOfManyIsOneWrite(t *testing.T) {
	big := service("big", "f", crowd(5000)...)
	for name, pass := range map[string]func(*bridge, model.Object){
		"full": func(b *bridge, o model.Object) { b.list(o, service("other", "g", "1")) },
		"partial": func(b *bridge, o model.Object) {
			b.replace(model.Listing{Places: []string{"f"}, Objects: []model.Object{o}})
		},
		"change": func(b *bridge, o model.Object) { b.change(model.Change{Upserts: []model.Object{o}}) },
	} {
		t.Run(name, func(t *testing.T) {
			supervised(t, func(b *bridge) {
				b.list(big, service("other", "g", "1"))
				pass(b, weighed(big, 4321, 7))
				b.wrote("update " + title(big.Owned[4321].Ref))
			})
		})
	}
}

func TestPlacesDoNotConcernEachOther(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", "f", "1"), service("b", "f", "2"), service("c", "g", "3"))
		b.replace(model.Listing{Places: []string{"f"}, Objects: []model.Object{service("b", "f", "2")}})
		b.wrote("delete Endpoint ns/a/1", "delete Service ns/a")
		b.replace(model.Listing{Places: []string{"f", "nowhere"}})
		b.holds("Endpoint ns/c/3", "Service ns/c in g")
		b.replace(model.Listing{Places: []string{}})
		b.holds("Endpoint ns/c/3", "Service ns/c in g")
	})
}

func TestObjectMovesWithoutBeingDeleted(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", "f", "1"), service("b", "f"))
		b.replace(model.Listing{Places: []string{"g"}, Objects: []model.Object{service("a", "g", "1")}})
		b.wrote("update Service ns/a")
		b.replace(model.Listing{Places: []string{"f"}})
		b.wrote("delete Service ns/b")
		b.replace(model.Listing{Places: []string{"g", "f"}, Objects: []model.Object{service("a", "f", "1")}})
		b.wrote("update Service ns/a")
		b.replace(model.Listing{Places: []string{"g"}})
		b.holds("Endpoint ns/a/1", "Service ns/a in f")
	})
}

func TestChangesApplyObjectByObject(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", "", "1"), service("a/b", "", "2"), service("ab", "", "3"), workload("a", ""))
		b.change(model.Change{
			Upserts: []model.Object{service("ab", "", "4")},
			Deletes: []model.Ref{ref(model.KindService, "a"), ref(model.KindService, "never was")},
		})
		b.wrote("delete Endpoint ns/a/1", "delete Service ns/a", "create Endpoint ns/ab/4", "delete Endpoint ns/ab/3")
		b.holds("Endpoint ns/a/b/2", "Endpoint ns/ab/4", "Service ns/a/b", "Service ns/ab", "Workload ns/a")
		b.change(model.Change{
			Upserts: []model.Object{service("ab", "", "5")},
			Deletes: []model.Ref{ref(model.KindService, "ab"), ref(model.KindEndpoint, "a/b/2")},
		})
		b.holds("Endpoint ns/a/b/2", "Endpoint ns/ab/5", "Service ns/a/b", "Service ns/ab", "Workload ns/a")
	})
}

// TestNestedNamesAreTakenOver has an endpoint that stood alone become part of
// one of two objects whose names it extends.
func TestNestedNamesAreTakenOver(t *testing.T) {
	alone := model.Object{Record: service("a/b", "", "1").Owned[0]}
	supervised(t, func(b *bridge) {
		b.list(alone, service("crowd", "", crowd(100)...))
		b.change(model.Change{Upserts: []model.Object{service("a", ""), service("a/b", "", "1")}})
		b.wrote("create Service ns/a", "create Service ns/a/b", "update Endpoint ns/a/b/1")
		b.change(model.Change{Deletes: []model.Ref{ref(model.KindService, "a"), ref(model.KindEndpoint, "a/b/1")}})
		b.wrote("delete Service ns/a")
		b.change(model.Change{Deletes: []model.Ref{ref(model.KindService, "a/b")}})
		b.wrote("delete Endpoint ns/a/b/1", "delete Service ns/a/b")
	})
}

func TestObjectsMayHaveNoNamespace(t *testing.T) {
	bare := service("a", "f", "1")
	bare.Record.Namespace, bare.Owned[0].Namespace = "", ""
	supervised(t, func(b *bridge) {
		b.list(bare, service("a", "f", "1"), service("b", "g", crowd(40)...))
		b.change(model.Change{Deletes: []model.Ref{bare.Record.Ref}})
		b.wrote("delete Endpoint /a/1", "delete Service /a")
	})
}

func TestNothingBeforeTheFirstFullListing(t *testing.T) {
	supervised(t, func(b *bridge) {
		early := map[string]func(context.Context, source.Sink) error{
			"partial listing": func(ctx context.Context, sink source.Sink) error {
				return sink.Replace(ctx, model.Listing{Places: []string{"f"}})
			},
			"change": func(ctx context.Context, sink source.Sink) error { return sink.Change(ctx, model.Change{}) },
		}
		for name, call := range early {
			if err := b.do(call); err == nil {
				t.Errorf("a %s was taken before a complete listing", name)
			} else {
				mentions(t, err.Error(), "complete listing")
			}
		}
		b.inState(source.StateListing)
	})
}

func TestNewProcessGoesOnFromTheStore(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", "f", "1"), service("b", "g", "2"))
		b.store.saved = time.Now()
		time.Sleep(time.Hour)
		next := connect(b.t, b.store)
		if st := next.Status(); st.State != source.StateStale || st.Services != 2 || st.Endpoints != 2 || !st.Since.Equal(time.Now()) {
			t.Errorf("at its start: %+v", st)
		}
		mentions(t, next.Status().Reason, "serving the last known good from 2000-01-01T00:00:00Z until the registry has been listed")
		next.fail("no route")
		next.inState(source.StateStale)
		mentions(t, next.Status().Reason, "no route; trying again within", "until then serving the last known good from 2000-01-01T00:00:00Z")
		next.list(service("a", "f", "1"), service("b", "g", "2"))
		next.replace(model.Listing{Places: []string{"g"}})
		next.wrote("delete Endpoint ns/b/2", "delete Service ns/b")
		if len(b.store.commits) != 2 {
			t.Errorf("%d commits, want the first listing and the deletion alone", len(b.store.commits))
		}
	})
}

func TestRemoveLeavesNothing(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", "f", "1"), workload("w", "g"))
		for range 2 {
			if err := supervise.Remove(t.Context(), b.store, "reg"); err != nil {
				t.Fatal(err)
			}
			for rec := range b.store.List(model.Filter{}) {
				t.Errorf("%s is left", rec.Ref)
			}
		}
		b.list(service("a", "f", "1"))
		b.holds("Endpoint ns/a/1", "Service ns/a in f")
		if st := b.Status(); st.Services != 1 || st.Endpoints != 1 {
			t.Errorf("counts %d services and %d endpoints, want 1 and 1", st.Services, st.Endpoints)
		}
	})
}
