package kubernetes_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// everyKind is what is read of a cluster.
var everyKind = []string{
	"services", "endpointslices", "nodes", "pods", "serviceentries", "workloadentries", "workloadgroups", "sidecars",
}

// An API server that can begin a watch with a list is asked for that, at the start and
// when a watch cannot be resumed, and for no list.
func TestListsAreStreamed(t *testing.T) {
	t.Parallel()
	client, w := connect(t, shared), newWay(t, shared.API)
	if err := client.Namespace(t.Context(), "streams"); err != nil {
		t.Fatal(err)
	}
	m := mirror(t, w.Kubeconfig(t))
	m.awaitState(source.StateLive)
	w.Fail(expired, "")
	await(t, "everything to be streamed again", func() error {
		for _, resource := range everyKind {
			if n := len(streamed(w.Asked()[resource])); n < 2 {
				return fmt.Errorf("%s were streamed %d times", resource, n)
			}
		}
		return nil
	})
	m.mustFollow(client, "streams")
	asked := w.Asked()
	for _, resource := range everyKind {
		for _, q := range asked[resource] {
			if !q.Has("watch") {
				t.Errorf("%s are listed with %v", resource, q)
			}
		}
	}
}

// An API server that cannot begin a watch with a list is listed, and then watched. The
// list may not come from a cache that lags.
func TestAPIServerThatListsAlone(t *testing.T) {
	t.Parallel()
	client, w := connect(t, shared), newWay(t, shared.API)
	if err := client.Namespace(t.Context(), "lists"); err != nil {
		t.Fatal(err)
	}
	w.Fail(listOnly, "")
	m := mirror(t, w.Kubeconfig(t))
	m.awaitState(source.StateLive)
	m.mustFollow(client, "lists")
	asked := w.Asked()
	for _, resource := range everyKind {
		lists := slices.DeleteFunc(asked[resource], func(q url.Values) bool { return q.Has("watch") })
		if len(lists) == 0 {
			t.Errorf("%s are not listed", resource)
		}
		for n, q := range lists {
			if version := q.Get("resourceVersion"); version == "0" || n == 0 && version != "" {
				t.Errorf("list %d of %s asks for version %q", n, resource, version)
			}
		}
	}
}

// streamed are the requests for a watch that begins with a list.
func streamed(requests []url.Values) []url.Values {
	return slices.DeleteFunc(requests, func(q url.Values) bool { return !q.Has("watch") || q.Get("sendInitialEvents") != "true" })
}

// mustFollow writes a Service with two endpoints, and waits until they are there.
func (m *mirrored) mustFollow(client *cluster.Client, namespace string) {
	m.t.Helper()
	for _, o := range objects(m.t, steadyObjects, namespace) {
		if err := client.Apply(m.t.Context(), resources[o.GetKind()], o); err != nil {
			m.t.Fatal(err)
		}
	}
	await(m.t, "the endpoints", func() error {
		if r := m.records(namespace); !has(r, "10.9.0.1") || !has(r, "10.9.0.2") {
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

// lists counts the lists of a resource that were asked for.
func lists(w *way, resource string) (n int) {
	for _, options := range w.Asked()[resource] {
		if options.Get("watch") != "true" {
			n++
		}
	}
	return n
}

// A kind that may be listed and not watched is reported once, however often it is listed.
func TestKindThatMayOnlyBeListed(t *testing.T) {
	t.Parallel()
	w := newWay(t, shared.API)
	w.Fail(unwatched, "sidecars")
	m := mirror(t, w.Kubeconfig(t))
	m.awaitRejected("sidecars", "list and watch")
	before, first := m.supervisor.Status().RejectedTotal, lists(w, "sidecars")
	await(t, "two more lists", func() error {
		if n := lists(w, "sidecars"); n < first+2 {
			return fmt.Errorf("there were %d", n-first)
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
