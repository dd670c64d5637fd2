package istio_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// feed is an Isthmus from which an istiod takes its configuration over MCP-over-xDS,
// beside that of the API server, and a folder that the Isthmus reads.
type feed struct {
	*isthmus
	*sidecars

	namespace string
	folder    string
	address   string // of the Isthmus
	cluster   *cluster.Cluster
	marks     int // see Settle
}

// startFeed starts an Isthmus on an empty folder and more sources and, in a cluster of
// the test's own, an istiod that reads it and is ready by that alone.
func startFeed(t *testing.T, namespace string, more ...string) *feed {
	t.Helper()
	port := freePort(t)
	f := &feed{folder: t.TempDir(), address: "127.0.0.1:" + port, namespace: namespace, cluster: startCluster(t)}
	f.isthmus = serveConfig(t, "isthmus", fmt.Sprintf(`
instance: %s
sources:
- name: files
  required: true
  file: {path: %s, carry: [all]}
%soutputs:
  xds:
    listen: %s
    debounce: {configuration: {stateOfTheWorld: {quiet: 50ms, max: 500ms}}}
admin: {listen: "127.0.0.1:0"}
log: {level: debug, format: text}
`, namespace, f.folder, strings.Join(more, ""), f.address))
	ctx, cancel := context.WithTimeout(t.Context(), until.Patience)
	defer cancel()
	a := connect(t, f.cluster)
	a.Namespace(namespace)
	i, err := f.cluster.StartIstiodWith(ctx, fmt.Sprintf("configSources: [{address: \"xds://%s\"}, {address: \"k8s://\"}]\n", f.address))
	if err != nil {
		t.Fatal(err)
	}
	f.sidecars = &sidecars{api: a, istiod: i}
	t.Cleanup(http.DefaultClient.CloseIdleConnections) // of those who read counters
	return f
}

// Follow has Envoys take what istiod makes of it.
func (f *feed) Follow() {
	f.api.t.Helper()
	f.sidecars = startSidecarsOf(f.api.t, f.cluster, f.api, f.istiod, f.namespace)
}

// Write writes a ServiceEntry of some endpoints into the folder, at once.
func (f *feed) Write(name string, endpoints ...string) {
	f.api.t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  hosts: [%[1]s.example]
  location: MESH_INTERNAL
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
`, name, f.namespace)
	if len(endpoints) > 0 {
		text.WriteString("  endpoints:\n")
	}
	for _, e := range endpoints {
		fmt.Fprintf(&text, "  - {address: %s, weight: %d}\n", e, 1+f.marks)
	}
	f.WriteFile(name+".yaml", text.String())
}

// WriteFile replaces a file of the folder.
func (f *feed) WriteFile(name, text string) {
	f.api.t.Helper()
	path := filepath.Join(filepath.Dir(f.folder), name+".new")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.api.t.Fatal(err)
	}
	if err := os.Rename(path, filepath.Join(f.folder, name)); err != nil {
		f.api.t.Fatal(err)
	}
}

// Remove removes a file of the folder.
func (f *feed) Remove(name string) {
	f.api.t.Helper()
	if err := os.Remove(filepath.Join(f.folder, name+".yaml")); err != nil {
		f.api.t.Fatal(err)
	}
}

func clusterOf(service string) string { return "outbound|80||" + service + ".example" }

// Settle waits until istiod has nothing left to push: two changes of an endpoint,
// one after the other, have arrived.
func (f *feed) Settle() {
	f.api.t.Helper()
	for range 2 {
		f.marks++
		f.Write(marker, "10.9.0.1")
		f.Await(clusterOf(marker), []string{fmt.Sprintf("10.9.0.1:80 %d", 1+f.marks)})
	}
}

// MustPush is that istiod makes pushes of a kind for a change, and for those of the
// marker, which are of endpoints. It returns what istiod counted.
func (f *feed) MustPush(what, as string, change func()) cluster.Pushes {
	f.api.t.Helper()
	f.Settle()
	return f.mustPushNext(what, as, change)
}

// mustPushNext is MustPush once it is settled.
func (f *feed) mustPushNext(what, as string, change func()) cluster.Pushes {
	f.api.t.Helper()
	before, connections := f.istiod.Pushes(f.api.t), f.connections()
	change()
	f.Settle()
	pushed := f.sidecars.istiod.Pushes(f.api.t).Since(before)
	if as == ofEndpoints && f.connections() > connections { // one has connected anew, for which it was sent everything
		maps.DeleteFunc(pushed, func(what string, _ int) bool { return !strings.HasPrefix(what, "for ") && what != "eds" })
	}
	if err := differ(pushed, as); err != nil {
		f.api.t.Errorf("%s: %v", what, err)
	}
	return pushed
}

// TestIstiodTakesServicesFromIsthmus has an istiod be ready by an Isthmus that knows
// nothing, and then take services from it, which Envoys come to have.
func TestIstiodTakesServicesFromIsthmus(t *testing.T) {
	t.Parallel()
	f := startFeed(t, "fed")
	f.mustShowIstiod()
	f.Write(marker, "10.9.0.1")
	f.Write("web", "10.0.0.1", "10.0.0.2")
	f.Follow()
	f.Await(clusterOf("web"), []string{"10.0.0.1:80 1", "10.0.0.2:80 1"})

	marks := func() int { return 1 + f.marks }
	for _, step := range []struct {
		what   string
		change func()
		shows  func() []string
		as     string
	}{
		{"an endpoint comes", func() { f.Write("web", "10.0.0.1", "10.0.0.2", "10.0.0.3") }, func() []string {
			return []string{fmt.Sprintf("10.0.0.1:80 %d", marks()), fmt.Sprintf("10.0.0.2:80 %d", marks()), fmt.Sprintf("10.0.0.3:80 %d", marks())}
		}, ofEndpoints},
		{"an endpoint goes", func() { f.Write("web", "10.0.0.2") }, func() []string { return []string{fmt.Sprintf("10.0.0.2:80 %d", marks())} }, ofEndpoints},
		{"all endpoints go", func() { f.Write("web") }, func() []string { return []string{} }, ofEndpoints},
		{"endpoints come again", func() { f.Write("web", "10.0.0.4") }, func() []string { return []string{fmt.Sprintf("10.0.0.4:80 %d", marks())} }, ofEndpoints},
		{"a service goes", func() { f.Remove("web") }, func() []string { return nil }, ofServices},
		{"a service comes", func() { f.Write("web", "10.0.0.5") }, func() []string { return []string{fmt.Sprintf("10.0.0.5:80 %d", marks())} }, ofServices},
	} {
		pushed := f.MustPush(step.what, step.as, func() {
			step.change()
			f.Await(clusterOf("web"), step.shows())
		})
		t.Logf("%s: istiod counts %v", step.what, pushed)
	}
	f.MustHaveRejectedNothing()
}

// mustShowIstiod is that the admin API has istiod among the clients, with all that it
// asked for.
func (f *feed) mustShowIstiod() {
	f.api.t.Helper()
	var clients []struct {
		ID, Kind string
		Types    map[string]struct{ State string }
	}
	if err := f.ask(http.MethodGet, "/api/v1/clients", &clients); err != nil {
		f.api.t.Fatal(err)
	}
	if len(clients) != 1 || clients[0].Kind != "istiod" || len(clients[0].Types) < 16 {
		f.api.t.Errorf("the clients are %+v", clients)
	}
	f.api.t.Logf("%s asks for %v", clients[0].ID, slices.Sorted(maps.Keys(clients[0].Types)))
}

// TestIstiodKeepsItsServicesWithoutIsthmus kills the Isthmus. Nothing disappears, and
// what changed meanwhile arrives when it is back.
func TestIstiodKeepsItsServicesWithoutIsthmus(t *testing.T) {
	t.Parallel()
	f := startFeed(t, "killed")
	f.Write(marker, "10.9.0.1")
	f.Write("web", "10.0.0.1")
	f.Write("gone", "10.0.0.2")
	f.Follow()
	f.Await(clusterOf("gone"), []string{"10.0.0.2:80 1"})
	f.MustPush("a restart that changes nothing", ofEndpoints, func() {
		f.Kill()
		f.Restart()
		f.awaitIstiod()
	})
	f.Await(clusterOf("web"), []string{"10.0.0.1:80 1"})

	f.Kill()
	f.Apply(cluster.ServiceEntries, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: local, namespace: %s}
spec:
  hosts: [local.example]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.3.0.1, weight: 1}]
`, f.namespace))
	f.Await(clusterOf("local"), []string{"10.3.0.1:80 1"}) // istiod goes on with what it has
	f.Await(clusterOf("web"), []string{"10.0.0.1:80 1"})
	f.Await(clusterOf("gone"), []string{"10.0.0.2:80 1"})
	f.marks++
	f.Write("web", "10.0.0.3")
	f.Remove("gone")
	f.Restart()
	f.Await(clusterOf("web"), []string{fmt.Sprintf("10.0.0.3:80 %d", 1+f.marks)})
	f.Await(clusterOf("gone"), nil)
	f.Await(clusterOf(marker), []string{fmt.Sprintf("10.9.0.1:80 %d", f.marks)})
}

// awaitIstiod waits until istiod has come back and has taken everything.
func (f *feed) awaitIstiod() {
	f.api.t.Helper()
	await(f.api.t, "istiod to be back", func() error {
		var clients []struct {
			Types map[string]struct{ State string }
		}
		if err := f.ask(http.MethodGet, "/api/v1/clients", &clients); err != nil {
			return err
		}
		if len(clients) != 1 || clients[0].Types["networking.istio.io/v1/ServiceEntry"].State != "accepted" {
			return fmt.Errorf("the clients are %+v", clients)
		}
		return nil
	})
}

// flooded is how many services there are in the flood.
const flooded = 5000

// TestIstiodTakesAFlood has thousands of services come at once. Then one of them
// changes, and istiod finds by the versions that the others did not.
func TestIstiodTakesAFlood(t *testing.T) {
	t.Parallel()
	f := startFeed(t, "flood")
	f.Write(marker, "10.9.0.1")
	f.Follow()
	f.Settle()
	var text strings.Builder
	for i := range flooded {
		fmt.Fprintf(&text, `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: many-%[1]d, namespace: %[2]s}
spec:
  hosts: [many-%[1]d.example]
  location: MESH_INTERNAL
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.1.%[3]d.%[4]d}]
---
`, i, f.namespace, i/250, i%250+1)
	}
	f.WriteFile("many.yaml", text.String())
	last := clusterOf(fmt.Sprintf("many-%d", flooded-1))
	began := time.Now()
	f.Await(last, []string{fmt.Sprintf("10.1.%d.%d:80 1", (flooded-1)/250, (flooded-1)%250+1)})
	took := time.Since(began).Round(time.Second)
	pushed := f.MustPush("a change of one in a flood", ofEndpoints, func() {
		f.WriteFile("many.yaml", strings.Replace(text.String(), "10.1.0.1}", "10.2.0.1}", 1))
		f.Await(clusterOf("many-0"), []string{"10.2.0.1:80 1"})
	})
	t.Logf("%d services took %s to Envoy; of one that changes istiod counts %v", flooded, took, pushed)
	if most := 20; pushed["for endpoint"] > most {
		t.Errorf("istiod took %d services for changed", pushed["for endpoint"])
	}
}
