package plan

import (
	"encoding/json"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/observed"
	"github.com/isthmus-mesh/isthmus/output/istio/translate"
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

func newStepwise(c translate.Settings) *stepwise {
	stored := &observed.Objects{Stores: map[object.Kind]cache.Indexer{}}
	for _, kind := range []object.Kind{object.ServiceEntry, object.WorkloadEntry, object.Sidecar} {
		stored.Stores[kind] = cache.NewIndexer(cache.MetaNamespaceKeyFunc, observed.Index())
	}
	return &stepwise{Planner: New(c, stored, time.Nanosecond)}
}

// publishes has the planner take the next catalog.
func (s *stepwise) publishes(now *catalog.Snapshot, change catalog.Change, complete bool) {
	s.Published(change)
	s.facts = func() *Facts { return &Facts{Snapshot: now, Complete: complete, Any: true, Known: &SourceFacts{}} }
}

// shows has the API server show an object as it was written. It returns how long that is.
func (s *stepwise) shows(t fataler, o object.Object) int {
	text, err := json.Marshal(o.Whole().Manifest())
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
func (s *stepwise) watch(t fataler, r object.Ref, u *unstructured.Unstructured) {
	store := s.stored.Stores[r.Kind]
	if old, ok := s.stored.Object(r); ok {
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
	if err := store.Update(observed.Shorten(r.Kind, nil, u)); err != nil {
		t.Fatal(err)
	}
	if now, ok := s.stored.Object(r); ok {
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
