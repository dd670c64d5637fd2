package supervise_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/reading"
)

func bad(place, name, reason string) model.Rejection {
	f := model.Rejection{Place: place, Where: place + ":1", Reason: reason}
	if name != "" {
		f.Ref, f.Object = ref(model.KindService, name), "ServiceEntry ns/"+name
	}
	return f
}

// An object without effect is listed as well, so nothing of its registry is unknown.
func TestObjectWithoutEffectIsRead(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rejected model.Rejection
		unread   bool
	}{{bad("f", "a", "no ports"), true}, {model.Rejection{NoEffect: true}, false}, {model.Rejection{Outside: true}, false}} {
		if got := reading.Unread([]model.Rejection{test.rejected}); got != test.unread {
			t.Errorf("after %+v a part of the registry is unknown: %t", test.rejected, got)
		}
	}
}

func TestRejectedObjectKeepsItsLastGoodVersion(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", "f", "1"), service("b", "f", "2"))
		rejected := model.Listing{Objects: []model.Object{service("b", "f", "2")}, Rejected: []model.Rejection{bad("f", "a", "no ports")}}
		b.replace(rejected)
		since := time.Now()
		b.wrote("update Service ns/a")
		b.holds("Endpoint ns/a/1", "Endpoint ns/b/2", "Service ns/a in f stale: no ports", "Service ns/b in f")
		b.inState(source.StateLive)

		time.Sleep(time.Minute)
		commits := len(b.store.commits)
		b.replace(rejected)
		if len(b.store.commits) != commits {
			t.Errorf("the same rejection again was written: %v", b.store.last())
		}
		rejected.Rejected[0].Reason = "no hosts"
		b.replace(rejected)
		rec, _ := b.store.memory.Get(stored(model.KindService, "a"))
		if rec.Status.Stale != "no hosts" || !rec.Status.Since.Equal(since.Add(time.Minute)) {
			t.Errorf("status %+v, want the new reason since it arose", rec.Status)
		}

		b.list(service("a", "f", "1"), service("b", "f", "2"))
		b.wrote("update Service ns/a")
		b.holds("Endpoint ns/a/1", "Endpoint ns/b/2", "Service ns/a in f", "Service ns/b in f")
		if st := b.Status(); len(st.Rejected) != 0 || st.RejectedTotal != 2 {
			t.Errorf("rejected %v, %d in total, want none and 2", st.Rejected, st.RejectedTotal)
		}
	})
}

func TestRejectedObjectStandsWhereItWasRejected(t *testing.T) {
	for name, where := range map[string]struct{ places, after []string }{
		"full":    {nil, []string{"g"}},
		"partial": {[]string{"f", "g"}, []string{"g"}},
	} {
		t.Run(name, func(t *testing.T) {
			supervised(t, func(b *bridge) {
				b.list(service("a", "f", "1"), service("b", "f", "2"))
				b.replace(model.Listing{
					Places: where.places, Objects: []model.Object{service("b", "f", "2")}, Rejected: []model.Rejection{bad("g", "a", "no ports")},
				})
				b.holds("Endpoint ns/a/1", "Endpoint ns/b/2", "Service ns/a in g stale: no ports", "Service ns/b in f")
				b.replace(model.Listing{Places: where.after})
				b.holds("Endpoint ns/b/2", "Service ns/b in f")
			})
		})
	}
}

// TestRejectedElsewhereStaysWhereItIsUnreadable has an object stand in a place
// that cannot be read, and something wrong of the same name in another: when
// that goes, the last good version must not go with it.
func TestRejectedElsewhereStaysWhereItIsUnreadable(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", "f", "1"))
		b.replace(model.Listing{Places: []string{"f", "g"}, Rejected: []model.Rejection{bad("f", "", "not YAML"), bad("g", "a", "f has it")}})
		b.replace(model.Listing{Places: []string{"f", "g"}, Rejected: []model.Rejection{bad("f", "", "not YAML")}})
		b.holds("Endpoint ns/a/1", "Service ns/a in f stale: not YAML")
	})
}

func TestUnreadablePlaceKeepsWhatItHeld(t *testing.T) {
	for name, places := range map[string][]string{"full": nil, "partial": {"f"}} {
		t.Run(name, func(t *testing.T) {
			supervised(t, func(b *bridge) {
				b.list(service("a", "f", "1"), service("b", "f", "2"), service("c", "g", "3"))
				objects := []model.Object{service("b", "f", "4")}
				if places == nil {
					objects = append(objects, service("c", "g", "3"))
				}
				b.replace(model.Listing{Places: places, Objects: objects, Rejected: []model.Rejection{bad("f", "", "not YAML")}})
				b.wrote("update Service ns/a", "create Endpoint ns/b/4", "delete Endpoint ns/b/2")
				b.holds("Endpoint ns/a/1", "Endpoint ns/b/4", "Endpoint ns/c/3",
					"Service ns/a in f stale: not YAML", "Service ns/b in f", "Service ns/c in g")
				b.replace(model.Listing{Places: []string{"f"}})
				b.holds("Endpoint ns/c/3", "Service ns/c in g")
			})
		})
	}
}

// TestUnreadableNamespaceKeepsItsOwn has a place that was read in one namespace and not
// in another: what the former does not have any more goes, and what the latter had stays.
func TestUnreadableNamespaceKeepsItsOwn(t *testing.T) {
	for name, places := range map[string][]string{"full": nil, "partial": {"f"}} {
		t.Run(name, func(t *testing.T) {
			supervised(t, func(b *bridge) {
				far := service("far", "f", "1")
				far.Record.Namespace, far.Owned[0].Namespace = "two", "two"
				b.list(service("a", "f", "1"), service("b", "f", "2"), far)
				unread := bad("f", "", "may not be read")
				unread.Namespace = "two"
				b.replace(model.Listing{Places: places, Objects: []model.Object{service("b", "f", "2")}, Rejected: []model.Rejection{unread}})
				b.holds("Endpoint ns/b/2", "Endpoint two/far/1", "Service ns/b in f", "Service two/far in f stale: may not be read")
				b.replace(model.Listing{Places: places, Objects: []model.Object{service("b", "f", "2")}})
				b.holds("Endpoint ns/b/2", "Service ns/b in f")
				if st := b.Status(); len(st.Rejected) != 0 || st.RejectedTotal != 1 {
					t.Errorf("rejected %v, %d in total, want none and 1", st.Rejected, st.RejectedTotal)
				}
			})
		})
	}
}

func TestListedAndRejectedCountsAsListed(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.replace(model.Listing{
			Objects:  []model.Object{service("a", "f", "1")},
			Rejected: []model.Rejection{bad("g", "a", "f has it already")},
		})
		b.holds("Endpoint ns/a/1", "Service ns/a in f")
		if st := b.Status(); len(st.Rejected) != 1 {
			t.Errorf("rejected %v, want the second document", st.Rejected)
		}
	})
}

func TestRejectionInAChange(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", "", "1"), service("b", "", "2"))
		b.change(model.Change{Rejected: []model.Rejection{bad("", "a", "no ports"), bad("", "new", "no hosts")}})
		b.wrote("update Service ns/a")
		b.change(model.Change{Upserts: []model.Object{service("b", "", "3")}})
		if st := b.Status(); len(st.Rejected) != 2 {
			t.Errorf("rejected %v, want both still", st.Rejected)
		}
		b.change(model.Change{Upserts: []model.Object{service("a", "", "1")}, Deletes: []model.Ref{ref(model.KindService, "new")}})
		b.holds("Endpoint ns/a/1", "Endpoint ns/b/3", "Service ns/a", "Service ns/b")
		if st := b.Status(); len(st.Rejected) != 0 {
			t.Errorf("rejected %v, want none", st.Rejected)
		}
	})
}

func TestUnknownRejectionWithoutPlace(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", ""), service("b", ""))
		b.change(model.Change{Rejected: []model.Rejection{bad("", "", "not JSON")}})
		b.holds("Service ns/a", "Service ns/b")
		if st := b.Status(); len(st.Rejected) != 1 {
			t.Errorf("rejected %v, want one", st.Rejected)
		}
		b.replace(model.Listing{Rejected: []model.Rejection{bad("", "", "not JSON")}})
		b.holds("Service ns/a stale: not JSON", "Service ns/b stale: not JSON")
	})
}

func TestDeletionByNameOutweighsABrokenPlace(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", "f", "1"), service("b", "f"), service("c", "f"))
		b.change(model.Change{
			Deletes:  []model.Ref{ref(model.KindService, "a"), ref(model.KindService, "c")},
			Rejected: []model.Rejection{bad("f", "", "not YAML"), bad("f", "c", "no hosts")},
		})
		b.holds("Service ns/b in f stale: not YAML", "Service ns/c in f stale: no hosts")
	})
}

func TestRejectionsStandByPlaceInOrder(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.replace(model.Listing{
			Rejected: []model.Rejection{bad("g", "b", "2"), bad("f", "z", "1"), bad("g", "a", "2")},
			Ignored:  map[string]int{"ConfigMap": 3},
		})
		b.replace(model.Listing{Places: []string{"f", "h"}, Rejected: []model.Rejection{bad("h", "", "3")}})
		b.replace(model.Listing{Places: []string{"h"}, Rejected: []model.Rejection{bad("h", "", "3")}})
		st := b.Status()
		want := []model.Rejection{bad("g", "a", "2"), bad("g", "b", "2"), bad("h", "", "3")}
		if diff := cmp.Diff(want, st.Rejected); diff != "" {
			t.Errorf("rejected (-want +got):\n%s", diff)
		}
		if st.RejectedTotal != 4 || st.Ignored["ConfigMap"] != 3 {
			t.Errorf("%d rejected in total and %v ignored", st.RejectedTotal, st.Ignored)
		}
	})
}

func TestImpossibleObjectPoisonsOnlyItself(t *testing.T) {
	poison := map[string]struct {
		object model.Object
		reason string
	}{
		"no kind":        {model.Object{Record: model.Record{Ref: ref("", "x"), Spec: model.Service{}}}, "kind is missing"},
		"no name":        {service("", "f", "1"), "name is missing"},
		"nothing at all": {model.Object{}, "kind is missing"},
		"no spec":        {model.Object{Record: model.Record{Ref: ref(model.KindService, "a"), Place: "f"}}, "specification"},
		"other spec":     {model.Object{Record: model.Record{Ref: ref(model.KindService, "a"), Spec: model.Workload{}}}, "model.Workload"},
		"reserved":       {model.Object{Record: model.Record{Ref: ref(model.KindSource, "a"), Spec: model.SourceMark{}}}, "reserved"},
		"owned name":     {model.Object{Record: service("a", "f").Record, Owned: service("b", "f", "1").Owned}, "Endpoint ns/b/1"},
		"owned kind":     {model.Object{Record: service("a", "f").Record, Owned: []model.Record{workload("a/w", "").Record}}, "records of kind Workload cannot do"},
		"owned twice":    {service("a", "f", "7", "7"), "Endpoint ns/a/7"},
		"duplicate":      {service("good", "g", "9"), "comes before it"},
	}
	for name, p := range poison {
		t.Run(name, func(t *testing.T) {
			supervised(t, func(b *bridge) {
				b.list(service("a", "f", "1"), service("gone", "f"), service("stays", "f"))
				b.list(service("good", "f", "2"), p.object, service("late", "f"), service("stays", "f"))
				want := []string{"Endpoint ns/good/2", "Service ns/good in f", "Service ns/late in f", "Service ns/stays in f"}
				st := b.Status()
				if len(st.Rejected) != 1 {
					t.Fatalf("rejected %v, want one", st.Rejected)
				}
				mentions(t, st.Rejected[0].Reason, p.reason)
				if p.object.Record.Kind == model.KindService && p.object.Record.Name == "a" {
					want = []string{
						"Endpoint ns/a/1", "Endpoint ns/good/2", "Service ns/a in f stale: " + st.Rejected[0].Reason,
						"Service ns/good in f", "Service ns/late in f", "Service ns/stays in f",
					}
				}
				b.holds(want...)
				b.inState(source.StateLive)
			})
		})
	}
}
