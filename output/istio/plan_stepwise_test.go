package istio

import (
	"encoding/json"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/isthmus-mesh/isthmus/catalog"
)

// stepwise is a planner of which each plan, and what becomes of it, is the test's to decide.
// Objects come to its store as from a watch, and nothing is sent.
type stepwise struct {
	*Planner
	facts   func() *Facts // of the last catalog
	version int
}

// fataler is a test, a benchmark or a check of rapid.
type fataler interface{ Fatal(args ...any) }

func newStepwise(c Settings) *stepwise {
	stored := &objects{map[Kind]cache.Indexer{}}
	for _, kind := range []Kind{ServiceEntry, WorkloadEntry, Sidecar} {
		stored.stores[kind] = cache.NewIndexer(cache.MetaNamespaceKeyFunc, index())
	}
	return &stepwise{Planner: NewPlanner(c, stored, time.Nanosecond)}
}

// publishes has the planner take the next catalog.
func (s *stepwise) publishes(now *catalog.Snapshot, change catalog.Change, complete bool) {
	s.Published(change)
	s.facts = func() *Facts { return &Facts{Snapshot: now, Complete: complete, Any: true, Known: &SourceFacts{}} }
}

// shows has the API server show an object as it was written. It returns how long that is.
func (s *stepwise) shows(t fataler, o Object) int {
	text, err := json.Marshal(o.whole().Manifest())
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	s.watch(t, o.Ref(), u)
	return len(text)
}

// watch has the store see an object; nil is its deletion.
func (s *stepwise) watch(t fataler, r Ref, u *unstructured.Unstructured) {
	store := s.stored.stores[r.Kind]
	if old, ok := s.stored.object(r); ok {
		s.Seen(&old)
		if u == nil {
			if err := store.Delete(cache.ExplicitKey(r.Namespace + "/" + r.Name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if u == nil {
		return
	}
	s.version++
	u.SetResourceVersion(strconv.Itoa(s.version))
	if err := store.Update(shorten(r.Kind, u)); err != nil {
		t.Fatal(err)
	}
	if now, ok := s.stored.object(r); ok {
		s.Seen(&now)
	}
}

// does carries out an action.
func (s *stepwise) does(t fataler, a Action) int {
	switch a.Verb {
	case Create, Update:
		return s.shows(t, a.Want)
	case Delete:
		s.watch(t, a.Ref, nil)
	case Leave:
	}
	return 0
}
