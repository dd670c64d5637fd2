package supervise_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
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

// delta is one endpoint of a service, as a registry reports it by itself.
func delta(owner, address string, weight uint32) model.Record {
	return model.Record{
		Ref: ref(model.KindEndpoint, owner+"/"+address), Owner: ref(model.KindService, owner),
		Spec: model.Endpoint{Address: address, Weight: weight},
	}
}

func upserted(records ...model.Record) model.Change { return model.Change{OwnedUpserts: records} }

func dropped(owner, address string) model.Change {
	return model.Change{OwnedDeletes: []model.Ref{ref(model.KindEndpoint, owner+"/"+address)}}
}

func TestOneOwnedRecordChangesAlone(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", "f", "1", "2"))
		b.change(upserted(delta("a", "3", 1)))
		b.wrote("create Endpoint ns/a/3")
		b.holds("Endpoint ns/a/1", "Endpoint ns/a/2", "Endpoint ns/a/3", "Service ns/a in f")
		b.change(upserted(delta("a", "2", 7)))
		b.wrote("update Endpoint ns/a/2")
		b.change(dropped("a", "1"))
		b.wrote("delete Endpoint ns/a/1")
		b.holds("Endpoint ns/a/2", "Endpoint ns/a/3", "Service ns/a in f")
		for rec := range b.store.List(model.Filter{Kind: model.KindEndpoint}) {
			if rec.Owner != stored(model.KindService, "a") || rec.Path != "" {
				t.Errorf("%s has owner %v and path %q", rec.Name, rec.Owner, rec.Path)
			}
		}
		if st := b.Status(); st.Endpoints != 2 || st.Services != 1 {
			t.Errorf("%d services and %d endpoints are counted", st.Services, st.Endpoints)
		}
	})
}

// The same word twice, and the end of what is not there, change nothing.
func TestDeltaThatSaysNothingNewWritesNothing(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", "f", "1"))
		commits := len(b.store.commits)
		b.change(upserted(delta("a", "1", 0)))
		b.change(dropped("a", "9"))
		b.change(model.Change{OwnedDeletes: []model.Ref{ref(model.KindService, "a")}}) // which is an object
		if n := len(b.store.commits); n != commits {
			t.Errorf("there were %d more commits", n-commits)
		}
		b.holds("Endpoint ns/a/1", "Service ns/a in f")
	})
}

func TestDeltaOfAnUnknownOwnerAsksForAListing(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", "f", "1"))
		b.registry.answer(model.Listing{Objects: []model.Object{service("a", "f", "1"), service("b", "f", "5")}})
		began := time.Now()
		b.change(upserted(delta("b", "5", 0), delta("a", "2", 0)))
		b.holds("Endpoint ns/a/1", "Endpoint ns/a/2", "Service ns/a in f")
		time.Sleep(time.Minute)
		b.holds("Endpoint ns/a/1", "Endpoint ns/b/5", "Service ns/a in f", "Service ns/b in f")
		if asked := b.registry.asked(began); !slices.Equal(asked, []time.Duration{time.Second}) {
			t.Errorf("it was asked to list after %v, want once after a second", asked)
		}
		b.change(upserted(delta("b", "6", 0)))
		b.wrote("create Endpoint ns/b/6")
	})
}

// It is asked until it has listed.
func TestUnknownOwnerIsAskedForUntilTheRegistryHasListed(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", "f", "1"))
		began := time.Now()
		b.change(upserted(delta("b", "5", 0)))
		time.Sleep(2500 * time.Millisecond)
		b.change(upserted(delta("a", "3", 0))) // which ends nothing
		time.Sleep(time.Second)
		if asked := b.registry.asked(began); len(asked) != 3 {
			t.Errorf("it was asked to list after %v", asked)
		}
		b.list(service("a", "f", "1"))
		time.Sleep(time.Minute)
		if asked := b.registry.asked(began); len(asked) != 3 {
			t.Errorf("it was asked to list after %v", asked)
		}
	})
}

func TestOwnerInTheSameChange(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list()
		began := time.Now()
		b.change(model.Change{Upserts: []model.Object{service("a", "f", "1")}, OwnedUpserts: []model.Record{delta("a", "2", 0), delta("a", "1", 5)}})
		b.holds("Endpoint ns/a/1", "Endpoint ns/a/2", "Service ns/a in f")
		for rec := range b.store.List(model.Filter{Kind: model.KindEndpoint, Prefix: "a/1"}) {
			if spec, _ := rec.Spec.(model.Endpoint); spec.Weight != 5 {
				t.Errorf("its weight is %d, want that of the single record", spec.Weight)
			}
		}
		b.change(model.Change{
			Deletes:      []model.Ref{ref(model.KindService, "a")},
			OwnedUpserts: []model.Record{delta("a", "3", 0)},
		})
		b.holds()
		time.Sleep(1500 * time.Millisecond)
		if asked := b.registry.asked(began); len(asked) != 1 {
			t.Errorf("a record of an owner that is deleted with it: asked to list after %v", asked)
		}
	})
}

// The owner is what the record says, and not what its name begins with.
func TestOwnerIsWhatTheRecordSays(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", "f", "1"), service("a/b", "g", "1"))
		nested := delta("a/b", "2", 0)
		b.change(upserted(nested))
		b.change(model.Change{Deletes: []model.Ref{ref(model.KindService, "a")}})
		b.holds("Endpoint ns/a/b/1", "Endpoint ns/a/b/2", "Service ns/a/b in g")
		b.list(service("a", "f", "1"), service("a/b", "g", "1", "2"))
		began := time.Now()
		stolen := nested
		stolen.Owner = ref(model.KindService, "a")
		b.change(upserted(stolen))
		time.Sleep(1500 * time.Millisecond)
		if asked := b.registry.asked(began); len(asked) != 1 {
			t.Errorf("two owners of one record: asked to list after %v", asked)
		}
		b.change(model.Change{Deletes: []model.Ref{ref(model.KindService, "a")}})
		b.holds("Endpoint ns/a/b/1", "Endpoint ns/a/b/2", "Service ns/a/b in g")
	})
}

func TestBadDeltaIsRejectedByItself(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", "f", "1"))
		elsewhere := delta("a", "1", 9)
		elsewhere.Name = "b/1"
		alone := delta("a", "2", 9)
		alone.Owner = model.Ref{}
		b.change(upserted(elsewhere, alone, delta("a", "3", 0)))
		b.holds("Endpoint ns/a/1", "Endpoint ns/a/3", "Service ns/a in f")
		rejected := b.Status().Rejected
		if len(rejected) != 2 {
			t.Fatalf("rejected: %v", rejected)
		}
		mentions(t, rejected[0].Reason, "owner is missing")
		mentions(t, rejected[1].Reason, "Service ns/a", `"a/…"`)
		b.change(upserted(delta("a", "2", 0)))
		if n := len(b.Status().Rejected); n != 1 {
			t.Errorf("%d are rejected after one is right", n)
		}
	})
}

// What the registry has and cannot be taken is not asked for again and again.
func TestDeltaOfARejectedOwnerAsksForNothing(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.replace(model.Listing{Objects: []model.Object{service("a", "f", "1")}, Rejected: []model.Rejection{bad("g", "b", "bad port")}})
		began := time.Now()
		b.change(upserted(delta("b", "5", 0)))
		time.Sleep(time.Minute)
		b.holds("Endpoint ns/a/1", "Service ns/a in f")
		if asked := b.registry.asked(began); len(asked) != 0 {
			t.Errorf("it was asked to list after %v", asked)
		}
	})
}

func TestDeltaToAStaleOwnerAppliesAndDoesNotEndIt(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", "f", "1", "2"))
		b.replace(model.Listing{Rejected: []model.Rejection{bad("f", "a", "bad port")}})
		b.change(upserted(delta("a", "3", 0)))
		b.change(dropped("a", "1"))
		b.holds("Endpoint ns/a/2", "Endpoint ns/a/3", "Service ns/a in f stale: bad port")
	})
}

func TestDeltaToAHeldOwnerAppliesAndDoesNotEndIt(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", "f", crowd(20)...), service("b", "g", "1"))
		b.list(service("b", "g", "1"))
		b.inState(source.StateHeld)
		before := b.Status().Held
		b.change(upserted(delta("a", "new", 0)))
		b.change(dropped("a", "10.0.0.1"))
		b.inState(source.StateHeld)
		if st := b.Status(); st.Held != before-1 || st.Endpoints != 21 {
			t.Errorf("%d of %d are held, with %d endpoints", st.Held, before, st.Endpoints)
		}
		if _, held := b.heldFor(model.KindService, "a"); !held {
			t.Error("the owner is not held any more")
		}
		b.list(service("b", "g", "1"), service("a", "f", "new"))
		if _, held := b.heldFor(model.KindService, "a"); held {
			t.Error("the owner is held although it is listed")
		}
	})
}

// What a registry has reported since is there: it stays, and so does what it belongs
// to, until a listing says otherwise.
func TestReleaseKeepsWhatADeltaHasBrought(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", "f", crowd(20)...), service("b", "g", "1"), service("c", "g", crowd(20)...))
		b.list(service("b", "g", "1"))
		b.change(upserted(delta("a", "new", 0), delta("a", "10.0.0.1", 0)))
		if n, err := b.Release(b.t.Context()); n != 19+21 || err != nil {
			t.Errorf("released %d: %v", n, err)
		}
		b.inState(source.StateLive)
		b.holds("Endpoint ns/a/10.0.0.1", "Endpoint ns/a/new", "Endpoint ns/b/1", "Service ns/a in f", "Service ns/b in g")
		b.change(upserted(delta("a", "newer", 0)))
		b.list(service("b", "g", "1"))
		b.holds("Endpoint ns/b/1", "Service ns/b in g")
	})
}

func TestLaterListingIsAuthoritative(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", "f", "1", "2"))
		b.change(upserted(delta("a", "3", 0)))
		b.change(dropped("a", "1"))
		b.list(service("a", "f", "1", "2"))
		b.holds("Endpoint ns/a/1", "Endpoint ns/a/2", "Service ns/a in f")
		b.change(upserted(delta("a", "3", 0)))
		b.replace(model.Listing{Places: []string{"f"}, Objects: []model.Object{service("a", "f", "2")}})
		b.holds("Endpoint ns/a/2", "Service ns/a in f")
	})
}

// Whatever the order of listings and single records, what is stored is the last
// listing and what came after it.
func TestListingsAndDeltasEndWithWhatWasSaidLast(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(drawSaying), 1, 20).Draw(r, "steps")
		var wrong string
		synctest.Test(t, func(t *testing.T) {
			b := connectWith(t, newLedger(), supervise.Config{Hold: hold.Config{Share: 1, Min: 1000, For: time.Minute}})
			want := map[string]map[string]uint32{}
			b.list()
			for _, s := range steps {
				s.apply(want)
				if err := b.do(s.say); err != nil {
					wrong = err.Error()
				}
				if diff := cmp.Diff(want, endpointsOf(b)); diff != "" && wrong == "" {
					wrong = fmt.Sprintf("after %+v (-want +got):\n%s", s, diff)
				}
			}
		})
		if wrong != "" {
			r.Fatal(wrong)
		}
	})
}

// saying is one thing a registry says: all its services, or one endpoint, or two.
type saying struct {
	Listed  map[string]map[string]uint32 // weights by service and address; nil for single records
	Owner   string
	Changed map[string]uint32
	Gone    []string
	With    bool // the owner comes with them, without any endpoints
}

func drawSaying(t *rapid.T) saying {
	address, weight := rapid.SampledFrom([]string{"1", "2", "3", "b/1"}), rapid.Uint32Range(0, 2)
	service := rapid.SampledFrom([]string{"a", "b", "c"})
	if rapid.IntRange(0, 3).Draw(t, "what") == 0 {
		return saying{Listed: rapid.MapOfN(service, rapid.MapOfN(address, weight, 0, 3), 0, 3).Draw(t, "listed")}
	}
	return saying{
		Owner: service.Draw(t, "owner"), With: rapid.IntRange(0, 4).Draw(t, "with") == 0,
		Changed: rapid.MapOfN(address, weight, 0, 2).Draw(t, "changed"),
		Gone:    rapid.SliceOfN(address, 0, 2).Draw(t, "gone"),
	}
}

// apply does to a plain state what was said.
func (s saying) apply(state map[string]map[string]uint32) {
	if s.Listed != nil {
		clear(state)
		for name, endpoints := range s.Listed {
			state[name] = maps.Clone(endpoints)
		}
		return
	}
	if s.With {
		state[s.Owner] = map[string]uint32{}
	}
	if state[s.Owner] == nil {
		return
	}
	for _, address := range s.Gone {
		delete(state[s.Owner], address)
	}
	maps.Copy(state[s.Owner], s.Changed)
}

func (s saying) say(ctx context.Context, sink source.Sink) error {
	if s.Listed != nil {
		l := model.Listing{Objects: []model.Object{}}
		for name, endpoints := range s.Listed {
			o := service(name, "f")
			for address, weight := range endpoints {
				o.Owned = append(o.Owned, delta(name, address, weight))
			}
			l.Objects = append(l.Objects, o)
		}
		return sink.Replace(ctx, l)
	}
	var c model.Change
	if s.With {
		c.Upserts = []model.Object{service(s.Owner, "f")}
	}
	for address, weight := range s.Changed {
		c.OwnedUpserts = append(c.OwnedUpserts, delta(s.Owner, address, weight))
	}
	for _, address := range s.Gone {
		c.OwnedDeletes = append(c.OwnedDeletes, ref(model.KindEndpoint, s.Owner+"/"+address))
	}
	return sink.Change(ctx, c)
}

// endpointsOf returns the weights of what is stored, by owner and address.
func endpointsOf(b *bridge) map[string]map[string]uint32 {
	state := map[string]map[string]uint32{}
	for rec := range b.store.List(model.Filter{Kind: model.KindService}) {
		state[rec.Name] = map[string]uint32{}
	}
	for rec := range b.store.List(model.Filter{Kind: model.KindEndpoint}) {
		spec, _ := rec.Spec.(model.Endpoint)
		if state[rec.Owner.Name] == nil {
			state[rec.Owner.Name] = map[string]uint32{"without an owner": 1}
		}
		state[rec.Owner.Name][rec.Name[len(rec.Owner.Name)+1:]] = spec.Weight
	}
	return state
}
