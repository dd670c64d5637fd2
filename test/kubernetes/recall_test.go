package kubernetes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// placedPod is a pod on a node, which has the name of the namespace.
const placedPod = `
- {apiVersion: v1, kind: Node, metadata: {name: %[1]s, labels: {topology.kubernetes.io/region: r1, topology.kubernetes.io/zone: z1}}}
- apiVersion: v1
  kind: Pod
  metadata: {namespace: %[1]s, name: pod, labels: {app: web, topology.istio.io/network: vpc-2}}
  spec: {nodeName: %[1]s, serviceAccountName: web, containers: [{name: c, image: c}]}
`

// place writes a Service with one endpoint, which is a pod, and returns the UID of the pod.
func place(t *testing.T, client *cluster.Client, namespace string) (uid string) {
	t.Helper()
	if err := client.Namespace(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects(t, placedPod, namespace) {
		if err := client.Apply(t.Context(), resources[o.GetKind()], o); err != nil {
			t.Fatal(err)
		}
	}
	pod, err := client.Get(t.Context(), podsOf, namespace, "pod")
	if err != nil {
		t.Fatal(err)
	}
	slice := object(t, webSlice, namespace)
	slice.Object["endpoints"] = []any{onPod("10.1.0.1", namespace, "pod", string(pod.GetUID()))}
	if err := client.Apply(t.Context(), slicesOf, slice); err != nil {
		t.Fatal(err)
	}
	if err := client.Apply(t.Context(), services, object(t, webService, namespace)); err != nil {
		t.Fatal(err)
	}
	return string(pod.GetUID())
}

// onPod is an endpoint that is a pod on the node of its namespace.
func onPod(address, namespace, name, uid string) map[string]any {
	return map[string]any{
		"addresses": []any{address}, "nodeName": namespace,
		"targetRef": map[string]any{"kind": "Pod", "namespace": namespace, "name": name, "uid": uid},
	}
}

// endpoints are those of a namespace, by address.
func (m *mirrored) endpoints(namespace string) map[string]model.Record {
	out := map[string]model.Record{}
	for r := range m.store.List(model.Filter{Source: "k8s"}) {
		if e, is := r.Spec.(model.Endpoint); is && r.Namespace == namespace {
			out[e.Address] = r
		}
	}
	return out
}

// What pods and nodes said of endpoints stays if they may not be read any more, whether the
// same process reads the cluster anew or another one, and what they say is followed again
// when they may.
func TestRightsAreLost(t *testing.T) {
	t.Parallel()
	client := connect(t, shared)
	for _, kind := range []string{"pods", "nodes"} {
		for _, another := range []bool{false, true} {
			namespace := fmt.Sprintf("lost-%s-%t", kind, another)
			t.Run(namespace, func(t *testing.T) {
				t.Parallel()
				uid := place(t, client, namespace)
				w := newWay(t, shared.API)
				m := mirror(t, w.Kubeconfig(t))
				m.awaitState(source.StateLive)
				before := m.endpoints(namespace)["10.1.0.1"]
				mustBePlaced(t, before)

				if another {
					m.stop()
					w.Fail(forbidden, kind)
					m = mirrorInto(t, m.store, w.Kubeconfig(t))
				} else {
					w.Fail(failing, "")
					m.awaitState(source.StateStale)
					w.Fail(forbidden, kind)
				}
				m.awaitState(source.StateLive)
				m.awaitRejected(kind, "list")
				if diff := cmp.Diff(before, m.endpoints(namespace)["10.1.0.1"]); diff != "" {
					t.Errorf("the endpoint has changed (-before +now):\n%s", diff)
				}

				slice := object(t, webSlice, namespace)
				slice.Object["endpoints"] = []any{onPod("10.1.0.9", namespace, "pod", uid)}
				if err := client.Apply(t.Context(), slicesOf, slice); err != nil {
					t.Fatal(err)
				}
				await(t, "the pod's other address", func() error { return at(m, namespace, "10.1.0.9") })
				mustBePlaced(t, m.endpoints(namespace)["10.1.0.9"])

				for _, o := range objects(t, strings.NewReplacer("z1", "z2", "app: web", "app: shop").Replace(placedPod), namespace) {
					if err := client.Apply(t.Context(), resources[o.GetKind()], o); err != nil {
						t.Fatal(err)
					}
				}
				w.Fail(none, "")
				await(t, "what the pod and the node say now", func() error {
					e, _ := m.endpoints(namespace)["10.1.0.9"].Spec.(model.Endpoint)
					if app, _ := e.Labels.Get("app"); app != "shop" || e.Locality.Zone != "z2" {
						return fmt.Errorf("it is %+v", e)
					}
					return nil
				})
			})
		}
	}
}

func at(m *mirrored, namespace, address string) error {
	if all := m.endpoints(namespace); len(all) != 1 || all[address].Name == "" {
		return fmt.Errorf("there is %v", all)
	}
	return nil
}

// mustBePlaced holds that an endpoint has all that its pod and its node say.
func mustBePlaced(t *testing.T, r model.Record) {
	t.Helper()
	e, _ := r.Spec.(model.Endpoint)
	app, _ := e.Labels.Get("app")
	if app != "web" || e.ServiceAccount != "web" || e.Network != "vpc-2" || e.Locality != (model.Locality{Region: "r1", Zone: "z1"}) {
		t.Errorf("the endpoint is %+v", r)
	}
}
