package istio

import (
	"encoding/json"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/controller"
)

// stepwise is a writer of which each look, and what becomes of it, is the test's to decide. What
// the API server has comes to its view as from a watch, and nothing is sent.
type stepwise struct {
	*Writer
	version int
}

// fataler is a test, a benchmark or a check of rapid.
type fataler interface{ Fatal(args ...any) }

func newStepwise(t fataler, c Config) *stepwise {
	w, err := newWriter(c, Options{Instance: "test", settle: time.Nanosecond}, &rest.Config{Host: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	w.term.Store(controller.New(controller.Config[Key]{}))
	return &stepwise{Writer: w}
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

// watch has the view see an object; nil is its deletion.
func (s *stepwise) watch(t fataler, r Ref, u *unstructured.Unstructured) {
	store := s.view.kinds[r.Kind].GetIndexer()
	old, _, err := store.GetByKey(r.Namespace + "/" + r.Name)
	var now any
	switch {
	case u != nil:
		s.version++
		u.SetResourceVersion(strconv.Itoa(s.version))
		now = shorten(r.Kind, u)
		err = store.Update(now)
	case old != nil:
		err = store.Delete(old)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.view.notify(old, now)
}

// does carries out an action.
func (s *stepwise) does(t fataler, a Action) int {
	switch a.Verb {
	case Create, Update:
		return s.shows(t, a.want)
	case Delete:
		s.watch(t, a.Ref, nil)
	case Leave:
	}
	return 0
}
