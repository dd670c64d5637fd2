package kubernetes_test

import (
	"flag"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// histories is how many are tried unless -rapid.checks says otherwise.
const histories = 8

var serial atomic.Int64

// Whatever is written, moved between slices, split, duplicated, renamed, given another
// type and deleted, and whatever becomes of the way to the API server, of the server
// itself, of rights and of definitions meanwhile, what is served ends as the objects say,
// and equal to a list. A pod that is in some slice all the time is served all the time.
func TestAnyHistoryEndsEqualToAList(t *testing.T) {
	t.Parallel()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "rapid.checks" })
	done, c := 0, own(t)
	entries, err := connect(t, c).Get(t.Context(), definitions, "", "serviceentries.networking.istio.io")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		if done++; done > histories && !said && !t.Failed() {
			return
		}
		h := newHistory(t, rt, c, anew(entries))
		defer h.stop()
		for range rapid.IntRange(5, 25).Draw(rt, "steps") {
			h.step()
		}
		h.define()
		h.settle()
		h.mustEqualAList(h.namespace, func() *mirrored { return mirror(t, h.kubeconfig) })
		h.account.mustBeKept(rt)
	})
}

// history is a namespace that a test changes at random.
type history struct {
	*mirrored
	tb         testing.TB
	rt         *rapid.T
	cluster    *cluster.Cluster
	client     *cluster.Client
	way        *way
	namespace  string
	kubeconfig string
	account    *ledger
	podUIDs    map[string]string          // by name
	entries    *unstructured.Unstructured // the definition of ServiceEntries
	undefined  bool                       // it is not there
	syncs      int
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

func newHistory(t *testing.T, rt *rapid.T, c *cluster.Cluster, entries *unstructured.Unstructured) *history {
	w := newWayAs(t, c.API, "reader")
	h := &history{
		tb: t, rt: rt, cluster: c, client: connect(t, c), way: w, kubeconfig: w.Kubeconfig(t), entries: entries,
		namespace: fmt.Sprintf("history-%d", serial.Add(1)), podUIDs: map[string]string{},
	}
	h.account = newLedger(h.namespace)
	if err := h.client.Namespace(t.Context(), h.namespace); err != nil {
		t.Fatal(err)
	}
	h.grant(mayReadIstio)
	h.must(h.client.Apply(t.Context(), bindings, object(t, roleBinding)))
	for _, o := range objects(t, steadyObjects, h.namespace) {
		h.apply(o)
	}
	if rapid.IntRange(0, 3).Draw(rt, "defined late") == 0 {
		h.undefine()
	}
	h.mirrored = mirror(t, h.kubeconfig)
	h.account.follow(h.mirrored)
	h.settle()
	return h
}

func (h *history) must(err error) {
	if err != nil {
		h.rt.Fatal(err)
	}
}

// step is one thing that happens.
func (h *history) step() {
	name := rapid.SampledFrom([]string{"a", "b"}).Draw(h.rt, "service")
	steps := map[string]func(){
		"slice":        func() { h.apply(h.slice(name)) },
		"service":      func() { h.replace(h.service(name)) },
		"drop slice":   func() { h.delete(slicesOf, h.sliceName()) },
		"drop service": func() { h.delete(services, name) },
		"pod":          h.pod,
		"node": func() {
			h.apply(object(h.tb, `{apiVersion: v1, kind: Node, metadata: {name: %s, labels: {topology.kubernetes.io/region: %s, topology.kubernetes.io/zone: z1}}}`,
				h.node(), rapid.SampledFrom([]string{"r1", "r2"}).Draw(h.rt, "region")))
		},
		"entry": h.entry,
		"cut":   h.way.Cut,
		"fault": func() {
			h.way.Fail(fault(rapid.IntRange(int(refused), int(cut)).Draw(h.rt, "fault")),
				rapid.SampledFrom([]string{"", "services", "endpointslices", "pods", "nodes", "serviceentries"}).Draw(h.rt, "of"))
		},
		"repair": func() { h.way.Fail(none, "") },
		"rights": func() {
			h.grant(rapid.SampledFrom([]string{"", mayReadIstio}).Draw(h.rt, "rights"))
			h.way.Cut() // a watch that runs goes on without rights
		},
		"define":  h.define,
		"restart": h.restart,
		"settle":  h.settle,
		"wait":    func() { h.wait(300) },
	}
	steps[rapid.SampledFrom([]string{
		"slice", "slice", "slice", "slice", "slice", "slice", "service", "service", "drop slice", "drop service", "pod", "node", "entry",
		"cut", "fault", "fault", "repair", "rights", "define", "restart", "settle", "wait", "wait",
	}).Draw(h.rt, "what")]()
}

func (h *history) wait(most int) {
	<-time.After(time.Duration(rapid.IntRange(10, most).Draw(h.rt, "ms")) * time.Millisecond)
}

// restart kills the API server, and starts it again after a while, which may be longer
// than what the source waits before it says so.
func (h *history) restart() {
	h.cluster.API.Kill()
	h.wait(7000)
	h.must(h.cluster.API.Restart(h.rt.Context()))
}

// settle has nothing go wrong any more, and waits until everything that was written has
// come through.
func (h *history) settle() {
	h.way.Fail(none, "")
	h.grant(mayReadIstio)
	h.syncs++
	label := fmt.Sprint("sync-", h.syncs)
	marks := objects(h.tb, steadyObjects, h.namespace)
	marks[0].SetLabels(map[string]string{"sync": label})
	endpoints, _ := marks[1].Object["endpoints"].([]any)
	mark := fmt.Sprintf("10.9.1.%d", 100+h.syncs)
	marks[1].Object["endpoints"] = append(endpoints, map[string]any{"addresses": []any{mark}})
	for _, o := range marks {
		h.apply(o)
	}
	h.awaitState(source.StateLive)
	await(h.tb, "what the objects say", func() error { return h.account.settled(label, mark) })
}

// grant gives the reader the rights for Services, slices and nodes, and more.
func (h *history) grant(more string) {
	h.must(h.client.Apply(h.rt.Context(), clusterRoles, object(h.tb, "%s", fmt.Sprintf(clusterRole, more))))
}

// undefine takes the definition of ServiceEntries away, with all that there are.
func (h *history) undefine() {
	h.must(h.client.Delete(h.rt.Context(), definitions, "", h.entries.GetName()))
	h.undefined = true
	await(h.tb, "the definition to be gone", func() error {
		if _, err := h.client.Get(h.rt.Context(), definitions, "", h.entries.GetName()); !errors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}

func (h *history) define() {
	if !h.undefined {
		return
	}
	h.must(h.client.Apply(h.rt.Context(), definitions, h.entries))
	h.undefined = false
	await(h.tb, "ServiceEntries to be served", func() error {
		_, err := h.client.List(h.rt.Context(), cluster.ServiceEntries, h.namespace, "")
		return err
	})
}

// anew is an object as it can be created again.
func anew(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	metadata, _ := o.Object["metadata"].(map[string]any)
	maps.DeleteFunc(metadata, func(field string, _ any) bool { return field != "name" && field != "labels" && field != "annotations" })
	delete(o.Object, "status")
	return o
}

// resources are where objects of each kind are written.
var resources = map[string]schema.GroupVersionResource{
	"Service": services, "EndpointSlice": slicesOf, "Pod": podsOf, "Node": nodesOf, "ServiceEntry": cluster.ServiceEntries,
}

// apply writes an object, and reports whether it was taken: that it is invalid is as good.
func (h *history) apply(u *unstructured.Unstructured) (taken bool) {
	next, err := h.account.now().with(u)
	h.must(err)
	h.account.comes(next)
	switch err = h.client.Apply(h.rt.Context(), resources[u.GetKind()], u); {
	case err == nil:
		h.account.came(next)
		return true
	case !errors.IsInvalid(err) && !errors.IsNotFound(err): // the kind may be undefined
		h.rt.Fatal(err)
	}
	return false
}

// replace writes a Service that may be of another type, which not every one can become.
func (h *history) replace(u *unstructured.Unstructured) {
	if rapid.Bool().Draw(h.rt, "deleted before") {
		h.delete(services, u.GetName())
	}
	if !h.apply(u) {
		h.delete(services, u.GetName())
		h.apply(u)
	}
}

func (h *history) delete(kind schema.GroupVersionResource, name string) {
	next := h.account.now().without(kind.Resource, name)
	h.account.comes(next)
	if err := h.client.Delete(h.rt.Context(), kind, h.namespace, name); err != nil && !errors.IsNotFound(err) {
		h.rt.Fatal(err)
	}
	h.account.came(next)
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
