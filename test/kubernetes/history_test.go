package kubernetes_test

import (
	"cmp"
	"flag"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// histories is how many are tried unless -rapid.checks says otherwise.
const histories = 5

var serial atomic.Int64

// Whatever is written, moved between slices, split, duplicated, relabelled and deleted,
// and however the way to the API server fails meanwhile, the store ends equal to a list,
// and what was there all the time was never deleted.
func TestAnyHistoryEndsEqualToAList(t *testing.T) {
	t.Parallel()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "rapid.checks" })
	done := 0
	rapid.Check(t, func(rt *rapid.T) {
		if done++; done > histories && !said && !t.Failed() {
			return
		}
		h := newHistory(t, rt)
		defer h.stop()
		for range rapid.IntRange(5, 25).Draw(rt, "steps") {
			h.step()
		}
		h.way.Fail(none, "")
		h.awaitState(source.StateLive)
		h.mustEqualAList(h.namespace, func() *mirrored { return mirror(t, h.kubeconfig) })
		h.mustHave(h.steady, h.namespace)
	})
}

// history is a namespace that a test changes at random.
type history struct {
	*mirrored
	tb         testing.TB
	rt         *rapid.T
	client     *cluster.Client
	way        *way
	namespace  string
	kubeconfig string
	steady     map[string]model.UID
	podUIDs    map[string]string // by name
}

const steadyObjects = `
- apiVersion: v1
  kind: Service
  metadata: {namespace: %[1]s, name: steady}
  spec: {ports: [{name: http, port: 80}]}
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  metadata: {namespace: %[1]s, name: steady-1, labels: {kubernetes.io/service-name: steady}}
  addressType: IPv4
  ports: [{name: http, port: 8080}]
  endpoints: [{addresses: [10.9.0.1]}, {addresses: [10.9.0.2]}]
`

func newHistory(t *testing.T, rt *rapid.T) *history {
	w := newWay(t, shared.API)
	h := &history{
		tb: t, rt: rt, client: connect(t, shared), way: w, kubeconfig: w.Kubeconfig(t),
		namespace: fmt.Sprintf("history-%d", serial.Add(1)), podUIDs: map[string]string{},
	}
	if err := h.client.Namespace(t.Context(), h.namespace); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects(t, steadyObjects, h.namespace) {
		h.apply(o)
	}
	h.mirrored = mirror(t, h.kubeconfig)
	h.awaitState(source.StateLive)
	await(t, "what stays is there", func() error {
		if h.steady = h.uids(h.namespace); len(h.steady) != 3 {
			return fmt.Errorf("there are %d", len(h.steady))
		}
		return nil
	})
	return h
}

func (h *history) step() {
	what := rapid.SampledFrom([]string{
		"slice", "slice", "slice", "slice", "service", "drop slice", "drop service", "pod", "node", "entry",
		"cut", "fault", "mended", "wait",
	}).Draw(h.rt, "what")
	name := rapid.SampledFrom([]string{"a", "b"}).Draw(h.rt, "service")
	switch what {
	case "slice":
		h.apply(h.slice(name))
	case "service":
		h.apply(h.service(name))
	case "drop slice":
		h.delete(slicesOf, h.sliceName())
	case "drop service":
		h.delete(services, name)
	case "pod":
		h.pod()
	case "node":
		h.apply(object(h.tb, `{apiVersion: v1, kind: Node, metadata: {name: %s, labels: {topology.kubernetes.io/region: %s, topology.kubernetes.io/zone: z1}}}`,
			h.node(), rapid.SampledFrom([]string{"r1", "r2"}).Draw(h.rt, "region")))
	case "entry":
		h.entry()
	case "cut":
		h.way.Cut()
	case "fault":
		h.way.Fail(fault(rapid.IntRange(int(refused), int(cut)).Draw(h.rt, "fault")),
			rapid.SampledFrom([]string{"", "services", "endpointslices", "pods", "nodes", "serviceentries"}).Draw(h.rt, "of"))
	case "mended":
		h.way.Fail(none, "")
	case "wait":
		time.Sleep(time.Duration(rapid.IntRange(10, 300).Draw(h.rt, "ms")) * time.Millisecond)
	}
}

func (h *history) node() string {
	return rapid.SampledFrom([]string{"node-1", "node-2"}).Draw(h.rt, "node")
}

func (h *history) sliceName() string {
	return rapid.SampledFrom([]string{"s1", "s2", "s3", "s4-v6"}).Draw(h.rt, "slice")
}

func (h *history) service(name string) *unstructured.Unstructured {
	more := ""
	if rapid.Bool().Draw(h.rt, "two ports") {
		more = ", {name: admin, port: 90}"
	}
	kind := rapid.SampledFrom([]string{"", "publishNotReadyAddresses: true,"}).Draw(h.rt, "kind")
	return object(h.tb, `{apiVersion: v1, kind: Service, metadata: {namespace: %s, name: %s}, spec: {clusterIP: None, %s ports: [{name: http, port: 80}%s]}}`,
		h.namespace, name, kind, more)
}

// slice draws a slice of one of the services. The same pods and addresses come in all.
func (h *history) slice(service string) *unstructured.Unstructured {
	name := h.sliceName()
	u := object(h.tb, `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, metadata: {namespace: %s, name: %s, labels: {kubernetes.io/service-name: %s}}}`,
		h.namespace, name, service)
	prefix := "10.1.0."
	if name == "s4-v6" {
		prefix, u.Object["addressType"] = "fd00::", "IPv6"
	}
	port := int64(8080 + rapid.IntRange(0, 1).Draw(h.rt, "port"))
	u.Object["ports"] = []any{map[string]any{"name": "http", "port": port}}
	var endpoints []any
	for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(1, 6), 0, 5, rapid.ID[int]).Draw(h.rt, "endpoints") {
		endpoints = append(endpoints, h.endpoint(prefix, n))
	}
	u.Object["endpoints"] = endpoints
	return u
}

func (h *history) endpoint(prefix string, n int) map[string]any {
	e := map[string]any{"addresses": []any{prefix + strconv.Itoa(n)}, "nodeName": h.node()}
	conditions := map[string]any{}
	for _, name := range []string{"ready", "serving", "terminating"} {
		switch rapid.IntRange(0, 3).Draw(h.rt, name) {
		case 0:
			conditions[name] = true
		case 1:
			conditions[name] = false
		}
	}
	e["conditions"] = conditions
	if rapid.Bool().Draw(h.rt, "of a pod") {
		pod := "pod-" + strconv.Itoa(n)
		e["targetRef"] = map[string]any{"kind": "Pod", "namespace": h.namespace, "name": pod, "uid": cmp.Or(h.podUIDs[pod], "uid-of-"+pod)}
		e["hostname"] = pod
	}
	return e
}

func (h *history) pod() {
	name := "pod-" + strconv.Itoa(rapid.IntRange(1, 6).Draw(h.rt, "pod"))
	if rapid.IntRange(0, 2).Draw(h.rt, "gone") == 0 {
		h.delete(podsOf, name)
		return
	}
	h.apply(object(h.tb, `{apiVersion: v1, kind: Pod, metadata: {namespace: %s, name: %s, labels: {app: %s}}, spec: {containers: [{name: c, image: c}]}}`,
		h.namespace, name, rapid.SampledFrom([]string{"one", "two"}).Draw(h.rt, "app")))
	if pod, err := h.client.Get(h.rt.Context(), podsOf, h.namespace, name); err == nil {
		h.podUIDs[name] = string(pod.GetUID())
	}
}

func (h *history) entry() {
	if rapid.IntRange(0, 2).Draw(h.rt, "gone") == 0 {
		h.delete(cluster.ServiceEntries, "entry")
		return
	}
	h.apply(object(h.tb, `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {namespace: %s, name: entry}
spec:
  hosts: [entry.example]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.7.0.%d}]`, h.namespace, rapid.IntRange(1, 3).Draw(h.rt, "at")))
}

// resources are where objects of each kind are written.
var resources = map[string]schema.GroupVersionResource{
	"Service": services, "EndpointSlice": slicesOf, "Pod": podsOf, "Node": nodesOf, "ServiceEntry": cluster.ServiceEntries,
}

// apply writes an object. That it is invalid is as good: some fields cannot change.
func (h *history) apply(u *unstructured.Unstructured) {
	if err := h.client.Apply(h.rt.Context(), resources[u.GetKind()], u); err != nil && !errors.IsInvalid(err) {
		h.rt.Fatal(err)
	}
}

func (h *history) delete(kind schema.GroupVersionResource, name string) {
	if err := h.client.Delete(h.rt.Context(), kind, h.namespace, name); err != nil && !errors.IsNotFound(err) {
		h.rt.Fatal(err)
	}
}

// objects reads a list of manifests.
func objects(t testing.TB, format string, args ...any) (list []*unstructured.Unstructured) {
	t.Helper()
	var all []map[string]any
	if err := yaml.Unmarshal(fmt.Appendf(nil, format, args...), &all); err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		list = append(list, &unstructured.Unstructured{Object: o})
	}
	return list
}
