package kubernetes_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

const payEntry = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: pay, namespace: shop}
spec:
  hosts: [pay.shop.svc.cluster.local]
  ports: [{number: 8080, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [%s]
`

const payObjects = `
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: pay}
  spec: {ports: [{name: http, port: 8080}]}
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  metadata: {namespace: shop, name: pay-1, labels: {kubernetes.io/service-name: pay}}
  addressType: IPv4
  ports: [{name: http, port: 8080}]
  endpoints: [{addresses: [%q]}]
`

// One service has an instance in a file, in a Service Center and in each of two clusters.
// Each of these registries dies in turn, and comes back. All four instances are called
// all along, and what the other registries say is followed.
func TestOneServiceOfFourRegistries(t *testing.T) {
	if t.Parallel(); separately(t) {
		return
	}
	w := newUnion(t)
	for _, delta := range []bool{true, false} {
		p := connectEnvoy(t, w.isthmus, proxy.Config{Delta: delta, Workload: fmt.Sprintf("delta-%t", delta)})
		w.callers = append(w.callers, keepCalling(t, p, "outbound|8080||pay.shop.svc.cluster.local"))
	}
	all := []string{"file", "center", "east", "west"}
	w.mustBeAnsweredBy(all...)
	for _, c := range w.callers { // the first calls were made before Envoy had the cluster
		c.forget()
	}

	for _, death := range []struct {
		source, other string
		die, live     func()
	}{
		{"center", "east", func() { w.center.Inject(servicecenter.Any, servicecenter.Hang(), 0) }, w.center.Repair},
		{"east", "west", w.east.API.Kill, func() { w.must(w.east.API.Restart(t.Context())) }},
		{"west", "files", w.west.API.Kill, func() { w.must(w.west.API.Restart(t.Context())) }},
		{"files", "center", w.hideFiles, w.showFiles},
	} {
		death.die()
		w.awaitSource(death.source, false)
		w.comeAndGo(death.other)
		w.mustBeAnsweredBy(all...)
		death.live()
		w.awaitSource(death.source, true)
		w.mustBeAnsweredBy(all...)
	}
	w.comeAndGo("files", "center", "east", "west")
	for _, c := range w.callers {
		c.mustNotHaveFailed()
	}
}

// union is the registries of one service, and who calls it.
type union struct {
	t          *testing.T
	dir        string
	center     *servicecenter.Server
	id         string // of the service in the Service Center
	east, west *cluster.Cluster
	clients    map[*cluster.Cluster]*cluster.Client
	isthmus    *isthmus
	callers    []*caller
}

func newUnion(t *testing.T) *union {
	t.Helper()
	w := &union{
		t: t, dir: t.TempDir(), east: own(t), west: own(t), clients: map[*cluster.Cluster]*cluster.Client{},
		center: servicecenter.Start(t, servicecenter.Config{Prompt: true, KeepAlive: true}),
	}
	for name, address := range map[string]string{"file": "10.77.0.1", "center": "10.77.0.2", "east": "10.77.0.3", "west": "10.77.0.4", "guest": "10.77.0.5"} {
		listen(t, name, address+":8080")
	}
	w.must(os.Mkdir(filepath.Join(w.dir, "files"), 0o755))
	w.writeFile("{address: 10.77.0.1}")
	w.id = w.center.Register(servicecenter.Service{App: "shop", Name: "pay"})
	w.inCenter("10.77.0.2")
	for c, address := range map[*cluster.Cluster]string{w.east: "10.77.0.3", w.west: "10.77.0.4"} {
		w.clients[c] = connect(t, c)
		w.must(w.clients[c].Namespace(t.Context(), "shop"))
		for _, o := range objects(t, payObjects, address) {
			w.must(w.clients[c].Apply(t.Context(), resources[o.GetKind()], o))
		}
	}
	w.isthmus = serveIsthmus(t, w.dir, fmt.Sprintf(`
sources:
- {name: files, file: {path: files}}
- name: center
  servicecenter: {addresses: [%q], host: "{{.Service}}.shop.svc.cluster.local", namespace: shop, poll: 100ms, timeout: 1s}
- {name: east, kubernetes: {kubeconfig: %s, cluster: east}}
- {name: west, kubernetes: {kubeconfig: %s, cluster: west}}
outputs: {xds: {listen: "127.0.0.1:0"}}
admin: {listen: "127.0.0.1:0"}
`, w.center.URL(), kubeconfig(t, w.east.API, cluster.Admin), kubeconfig(t, w.west.API, cluster.Admin)))
	return w
}

func (w *union) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *union) writeFile(endpoints string) {
	w.must(os.WriteFile(filepath.Join(w.dir, "files", "pay.yaml"), fmt.Appendf(nil, payEntry, endpoints), 0o600))
}

func (w *union) inCenter(address string) (id string) {
	return w.center.RegisterInstance(w.id, servicecenter.Instance{HostName: "h", Endpoints: []string{"rest://" + address + ":8080"}})
}

func (w *union) inCluster(c *cluster.Cluster, address string) {
	slice := objects(w.t, payObjects, address)[1]
	slice.SetName("pay-2")
	w.must(w.clients[c].Apply(w.t.Context(), slicesOf, slice))
}

func (w *union) hideFiles() {
	w.must(os.Rename(filepath.Join(w.dir, "files"), filepath.Join(w.dir, "hidden")))
}

func (w *union) showFiles() {
	w.must(os.Rename(filepath.Join(w.dir, "hidden"), filepath.Join(w.dir, "files")))
}

// comeAndGo has an instance come to registries, and leave them again.
func (w *union) comeAndGo(registries ...string) {
	all := []string{"file", "center", "east", "west"}
	guest := append([]string{"guest"}, all...)
	come := map[string]func() (goes func()){
		"files": func() func() {
			w.writeFile("{address: 10.77.0.1}, {address: 10.77.0.5}")
			return func() { w.writeFile("{address: 10.77.0.1}") }
		},
		"center": func() func() {
			id := w.inCenter("10.77.0.5")
			return func() { w.center.UnregisterInstance(w.id, id) }
		},
		"east": func() func() {
			w.inCluster(w.east, "10.77.0.5")
			return func() { w.must(w.clients[w.east].Delete(w.t.Context(), slicesOf, "shop", "pay-2")) }
		},
		"west": func() func() {
			w.inCluster(w.west, "10.77.0.5")
			return func() { w.must(w.clients[w.west].Delete(w.t.Context(), slicesOf, "shop", "pay-2")) }
		},
	}
	for _, name := range registries {
		goes := come[name]()
		w.mustBeAnsweredBy(guest...)
		goes()
		w.mustBeAnsweredBy(all...)
	}
}

func (w *union) mustBeAnsweredBy(names ...string) {
	w.t.Helper()
	for _, c := range w.callers {
		c.mustBeAnsweredBy(names...)
	}
}

// awaitSource waits until a source is live, or is not.
func (w *union) awaitSource(name string, live bool) {
	w.t.Helper()
	await(w.t, fmt.Sprintf("%s to be live: %t", name, live), func() error {
		var sources []struct{ Name, State, Reason string }
		if err := ask(w.t.Context(), w.isthmus, "/api/v1/sources", &sources); err != nil {
			return err
		}
		for _, s := range sources {
			if s.Name == name && (s.State == "live") == live {
				return nil
			}
		}
		return fmt.Errorf("there are %+v", sources)
	})
}
