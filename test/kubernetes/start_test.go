package kubernetes_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// An API server that cannot begin a watch with a list is listed, and then watched.
func TestAPIServerThatListsAlone(t *testing.T) {
	t.Parallel()
	client, w := connect(t, shared), newWay(t, shared.API)
	if err := client.Namespace(t.Context(), "lists"); err != nil {
		t.Fatal(err)
	}
	w.Fail(listOnly, "")
	m := mirror(t, w.Kubeconfig(t))
	m.awaitState(source.StateLive)
	for _, o := range objects(t, steadyObjects, "lists") {
		if err := client.Apply(t.Context(), resources[o.GetKind()], o); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "the endpoints", func() error {
		if r := m.records("lists"); !has(r, "10.9.0.1") || !has(r, "10.9.0.2") {
			return fmt.Errorf("there is %v", r)
		}
		return nil
	})
}

// An API server that forgets a list after its first page is asked for all at once.
func TestListThatExpiresBetweenPages(t *testing.T) {
	t.Parallel()
	client, w := connect(t, shared), newWay(t, shared.API)
	if err := client.Namespace(t.Context(), "pages"); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects(t, steadyObjects, "pages") {
		if err := client.Apply(t.Context(), resources[o.GetKind()], o); err != nil {
			t.Fatal(err)
		}
	}
	w.Fail(forgetful, "")
	m := mirror(t, w.Kubeconfig(t))
	m.awaitState(source.StateLive)
	if r := m.records("pages"); !has(r, "10.9.0.1") || !has(r, "10.9.0.2") {
		t.Errorf("there is %v", r)
	}
}

// A kind that may be listed and not watched is reported once, however often it is listed.
func TestKindThatMayOnlyBeListed(t *testing.T) {
	t.Parallel()
	w := newWay(t, shared.API)
	w.Fail(unwatched, "sidecars")
	m := mirror(t, w.Kubeconfig(t))
	m.awaitRejected("sidecars", "list and watch")
	before, lists := m.supervisor.Status().RejectedTotal, w.Lists("sidecars")
	await(t, "two more lists", func() error {
		if n := w.Lists("sidecars"); n < lists+2 {
			return fmt.Errorf("there were %d", n-lists)
		}
		return nil
	})
	s := m.supervisor.Status()
	if s.State != source.StateLive || s.RejectedTotal != before || len(s.Rejected) != 1 {
		t.Errorf("it is %s, and %d were rejected, after %d: %v", s.State, s.RejectedTotal, before, s.Rejected)
	}
	w.Fail(none, "")
	m.awaitRejected("sidecars", "")
}

const labelledPod = `
apiVersion: v1
kind: Pod
metadata: {namespace: labelled, name: pod, labels: {app: web}}
spec: {containers: [{name: c, image: c}]}
`

// Pods that cannot be listed for a moment are waited for: without them all endpoints
// would lose their labels until they are.
func TestPodsAreWaitedFor(t *testing.T) {
	t.Parallel()
	client, w := connect(t, shared), newWay(t, shared.API)
	if err := client.Namespace(t.Context(), "labelled"); err != nil {
		t.Fatal(err)
	}
	if err := client.Apply(t.Context(), podsOf, object(t, labelledPod)); err != nil {
		t.Fatal(err)
	}
	pod, err := client.Get(t.Context(), podsOf, "labelled", "pod")
	if err != nil {
		t.Fatal(err)
	}
	slice := object(t, webSlice, "labelled")
	slice.Object["endpoints"] = []any{map[string]any{
		"addresses": []any{"10.1.0.1"}, "targetRef": map[string]any{"kind": "Pod", "namespace": "labelled", "name": "pod", "uid": string(pod.GetUID())},
	}}
	if err := client.Apply(t.Context(), services, object(t, webService, "labelled")); err != nil {
		t.Fatal(err)
	}
	if err := client.Apply(t.Context(), slicesOf, slice); err != nil {
		t.Fatal(err)
	}
	w.Fail(failing, "pods")
	m := mirror(t, w.Kubeconfig(t))
	mended := time.AfterFunc(time.Second, func() { w.Fail(none, "") })
	defer mended.Stop()
	m.awaitState(source.StateLive)
	for r := range m.store.List(model.Filter{Source: "k8s"}) {
		e, is := r.Spec.(model.Endpoint)
		if !is || r.Namespace != "labelled" {
			continue
		}
		if app, _ := e.Labels.Get("app"); app != "web" || r.Generation != 1 {
			t.Errorf("%s has labels %v in its generation %d", r.Name, e.Labels, r.Generation)
		}
	}
	if r := m.records("labelled"); !has(r, "10.1.0.1") {
		t.Errorf("there is %v", r)
	}
}
