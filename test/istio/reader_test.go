package istio_test

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
)

// reader is an Isthmus that reads an istiod, over MCP-over-xDS, and nothing else.
type reader struct{ *isthmus }

// startReader starts one, which reads some namespaces alone, or all.
func startReader(t *testing.T, name, address, tls string, only ...string) reader {
	t.Helper()
	return reader{serveConfig(t, name, fmt.Sprintf(`
instance: %s
sources:
- name: istiod
  xds: {address: %q%s}
  only: {namespaces: [%s]}
outputs: {xds: {listen: "127.0.0.1:0"}}
admin: {listen: "127.0.0.1:0"}
log: {level: debug, format: text}
`, name, address, tls, strings.Join(only, ", ")))}
}

// Await waits until a service has exactly these endpoints, such as "10.0.0.1"; nil if
// there is no service.
func (r reader) Await(host string, want ...string) {
	r.t.Helper()
	await(r.t, host+" in the catalog", func() error {
		got, err := r.endpoints(host)
		if err != nil {
			return err
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			return fmt.Errorf("what was expected (-) is not what is there (+):\n%s", diff)
		}
		return nil
	})
}

// none are the endpoints of a service that has none.
var none = []string{}

func (r reader) endpoints(host string) ([]string, error) {
	type service struct {
		Host      string
		Instances []struct{ Address string }
	}
	var services []service
	if err := r.ask(http.MethodGet, "/api/v1/services", &services); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(services, func(s service) bool { return s.Host == host }) {
		return nil, nil
	}
	if err := r.ask(http.MethodGet, "/api/v1/services/"+host, &services); err != nil {
		return nil, err
	}
	found := []string{}
	for _, s := range services {
		for _, i := range s.Instances {
			found = append(found, i.Address)
		}
	}
	slices.Sort(found)
	return found, nil
}

// AwaitReason waits until the source is not read, and says why.
func (r reader) AwaitReason(why string) {
	r.t.Helper()
	await(r.t, "a source that says "+why, func() error {
		s, err := r.source()
		if err == nil && !strings.Contains(s.Reason, why) {
			err = fmt.Errorf("it is %+v", s)
		}
		return err
	})
}

// ApplyEntry applies a ServiceEntry of one host, NAME.example, of endpoints at addresses.
func (a *api) ApplyEntry(namespace, name, exportTo string, addresses ...string) {
	a.t.Helper()
	var endpoints []string
	for _, address := range addresses {
		endpoints = append(endpoints, "{address: "+address+"}")
	}
	a.Apply(cluster.ServiceEntries, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  hosts: [%[1]s.example]
  exportTo: [%[3]q]
  location: MESH_INTERNAL
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [%[4]s]
`, name, namespace, cmp.Or(exportTo, "*"), strings.Join(endpoints, ", ")))
}

// DeleteEntry deletes a ServiceEntry.
func (a *api) DeleteEntry(namespace, name string) {
	a.t.Helper()
	if err := a.client.Delete(a.t.Context(), cluster.ServiceEntries, namespace, name); err != nil {
		a.t.Fatal(err)
	}
}

// TestIsthmusReadsIstiod has an istiod that lets everybody read pass on what is in the
// API server: what comes, changes and goes, is private, or is selected.
func TestIsthmusReadsIstiod(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	api := connect(t, c)
	istiod, err := c.StartIstiodWith(t.Context(), "", "ENABLE_XDS_API_GENERATOR_AUTH=false")
	if err != nil {
		t.Fatal(err)
	}
	api.Namespace("shop")
	api.ApplyEntry("shop", "web", "", "10.0.0.1", "10.0.0.2")
	api.ApplyEntry("shop", "gone", "", "10.0.1.1")
	r := startReader(t, "reader", istiod.XDS, "")
	r.Await("web.example", "10.0.0.1", "10.0.0.2")
	r.Await("gone.example", "10.0.1.1")

	api.ApplyEntry("shop", "web", "", "10.0.0.1", "10.0.0.2", "10.0.0.3")
	r.Await("web.example", "10.0.0.1", "10.0.0.2", "10.0.0.3")
	api.ApplyEntry("shop", "web", "", "10.0.0.3")
	r.Await("web.example", "10.0.0.3")
	api.DeleteEntry("shop", "gone")
	r.Await("gone.example")

	api.ApplyEntry("shop", "private", ".", "10.0.2.1")
	r.Await("private.example", "10.0.2.1")
	api.ApplyEntry("shop", "private", ".", "10.0.2.2")
	r.Await("private.example", "10.0.2.2")
	api.ApplyEntry("shop", "private", ".")
	r.Await("private.example", none...)
	api.DeleteEntry("shop", "private")
	r.Await("private.example")

	api.Apply(cluster.ServiceEntries, `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: selects, namespace: shop}
spec: {hosts: [selects.example], ports: [{number: 80, name: http, protocol: HTTP}], location: MESH_INTERNAL, resolution: STATIC, workloadSelector: {labels: {app: vm}}}
`)
	r.Await("selects.example", none...)
	for _, address := range []string{"10.0.3.1", "10.0.3.2"} {
		api.Apply(cluster.WorkloadEntries, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: vm, namespace: shop}
spec: {address: %s, labels: {app: vm}}
`, address))
		r.Await("selects.example", address)
	}
	if err := api.client.Delete(t.Context(), cluster.WorkloadEntries, "shop", "vm"); err != nil {
		t.Fatal(err)
	}
	r.Await("selects.example", none...)
}

// TestIsthmusOutlivesTheIstiodThatItReads kills the istiod. What it has said stays, and
// what changed meanwhile arrives when it is back.
func TestIsthmusOutlivesTheIstiodThatItReads(t *testing.T) {
	t.Parallel()
	api := connect(t, shared)
	istiod, err := shared.StartIstiodWith(t.Context(), "", "ENABLE_XDS_API_GENERATOR_AUTH=false")
	if err != nil {
		t.Fatal(err)
	}
	namespace := api.NewNamespace("outlived")
	api.ApplyEntry(namespace, "stays", "", "10.0.0.1", "10.0.0.2")
	api.ApplyEntry(namespace, "changes", "", "10.0.1.1")
	api.ApplyEntry(namespace, "goes", "", "10.0.2.1")
	r := startReader(t, "reader", istiod.XDS, "", namespace)
	everything := func() {
		r.Await("stays.example", "10.0.0.1", "10.0.0.2")
		r.Await("changes.example", "10.0.1.1")
		r.Await("goes.example", "10.0.2.1")
	}
	everything()
	istiod.Kill()
	r.AwaitState("stale")
	everything()
	api.ApplyEntry(namespace, "changes", "", "10.0.1.2")
	api.ApplyEntry(namespace, "comes", "", "10.0.3.1")
	api.DeleteEntry(namespace, "goes")
	everything()
	if err := istiod.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.AwaitState("live")
	r.Await("changes.example", "10.0.1.2")
	r.Await("comes.example", "10.0.3.1")
	r.Await("goes.example")
	r.Await("stays.example", "10.0.0.1", "10.0.0.2")
}

// TestIstiodIsReadByItsOwnNamespace has an istiod as it comes: it lets nobody read but
// over mutual TLS, as an identity of its root namespace. Others are shown the remedy.
func TestIstiodIsReadByItsOwnNamespace(t *testing.T) {
	t.Parallel()
	api := connect(t, shared)
	namespace := api.NewNamespace("guarded")
	api.ApplyEntry(namespace, namespace, "", "10.0.0.1")
	ca := authority.New(t, "mesh")
	dir := t.TempDir()
	file := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	files := func(name string) (cert, key string) {
		pair := ca.Issue(name, "spiffe://cluster.local/ns/"+name+"/sa/default")
		return file(name+".pem", pair.Cert), file(name+"-key.pem", pair.Key)
	}
	root := file("root.pem", ca.PEM)
	cert, key := files("mesh-root")
	i, err := shared.StartIstiodAs(t.Context(), cluster.Setting{
		Mesh:         "rootNamespace: mesh-root\n",
		Certificates: &cluster.Certificates{Cert: cert, Key: key, CA: root},
	})
	if err != nil {
		t.Fatal(err)
	}
	const remedy = "set tls.certFile to the certificate of a control plane"
	startReader(t, "unknown", i.XDS, "").AwaitReason(remedy)
	tls := func(cert, key string) string {
		return fmt.Sprintf(", tls: {caFile: %s, certFile: %s, keyFile: %s}", root, cert, key)
	}
	startReader(t, "foreign", i.Secure, tls(files("shop"))).AwaitReason(remedy)
	startReader(t, "trusted", i.Secure, tls(cert, key)).Await(namespace+".example", "10.0.0.1")
}
