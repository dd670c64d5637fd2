package istio_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/calls"
	"github.com/isthmus-mesh/isthmus/test/testkit/guide"
	"github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

const migrationGuide = "docs/migrate-from-servicecenter-istio.md"

// account is as whom the API server knows Isthmus in the guide.
const account = "system:serviceaccount:istio-system:isthmus"

// migration is a cluster with the earlier bridge in it, the registry, and who follows
// the guide.
type migration struct {
	*operator
	t        *testing.T
	api      *api
	registry *registry
	steps    []guide.Step
	port     string
	ghost    string // the consumer of the earlier bridge
	versions *versions
	traffic  []*calls.Traffic
}

// TestMigrationGuideIsFollowed does what the guide to migration says, command by
// command, from the objects of the earlier bridge to those of Isthmus and back.
// Meanwhile clients call the services, and every version of every object is
// looked at: no endpoint is ever missing.
func TestMigrationGuideIsFollowed(t *testing.T) {
	t.Parallel()
	m := startMigration(t)
	stages := []struct {
		title  string
		before func()
		after  func()
	}{
		{"1. Give it its rights", m.rightsAreNamed, m.rightsAreGiven},
		{"2. Look at what would change", nil, m.nothingIsOurs},
		{"3. Stop the earlier bridge", nil, m.bridgeIsStopped},
		{"4. Start Isthmus", nil, m.nothingIsOurs},
		{"5. Hand over one object", nil, func() { m.isOurs("carts") }},
		{"6. Hand over the others", nil, func() { m.isOurs("carts"); m.isOurs("orders"); m.registryIsFollowed() }},
		{"7. Remove what no service stands for", nil, m.abandonedIsGone},
		{"8. Clean up the registry", nil, m.registryIsClean},
		{"Going back", nil, m.nothingIsOursAnyMore},
	}
	for i, stage := range stages {
		if i >= len(m.steps) || m.steps[i].Title != stage.title {
			t.Fatalf("step %d of %s is not %q: change this test with it; its steps are %+v", i+1, migrationGuide, stage.title, m.steps)
		}
		if stage.before != nil {
			stage.before()
		}
		m.Follow(m.steps[i])
		stage.after()
		m.versions.mustBeWhole(stage.title)
	}
	if len(m.steps) != len(stages) {
		t.Errorf("%s has steps that this test does not know: %+v", migrationGuide, m.steps[len(stages):])
	}
	for _, traffic := range m.traffic {
		traffic.MustNotHaveFailed()
	}
}

// startMigration starts everything as it is on the day before.
func startMigration(t *testing.T) *migration {
	t.Helper()
	c := startCluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), until.Patience)
	defer cancel()
	istiod, err := c.StartIstiod(ctx)
	if err != nil {
		t.Fatal(err)
	}
	m := &migration{t: t, api: connect(t, c), registry: startRegistry(t), port: freePort(t)}
	admin := "127.0.0.1:" + freePort(t)
	kubeconfigs := t.TempDir()
	if err := c.API.WriteKubeconfig(filepath.Join(kubeconfigs, "operator"), cluster.Admin); err != nil {
		t.Fatal(err)
	}
	if err := c.API.WriteKubeconfig(filepath.Join(kubeconfigs, "isthmus"), account, "system:serviceaccounts"); err != nil {
		t.Fatal(err)
	}
	m.operator = newOperator(t, filepath.Join(kubeconfigs, "operator"), admin)
	page := guide.Read(t, filepath.Join(programs.Repository, filepath.FromSlash(migrationGuide)),
		"http://service-center.registry:30100", m.registry.URL(), "/var/lib/isthmus", filepath.Join(m.Dir, "data"),
		"8080", m.port, "10.0.0.1", "127.0.0.1", "- name: legacy\n", "- name: legacy\n  localAddresses: allow\n", "  istio: {}\n", fmt.Sprintf("  istio: {kubeconfig: %q}\n", filepath.Join(kubeconfigs, "isthmus")))
	config := page.Step(t, "Settings").Blocks[0]
	m.Write(config.File(), config.Text+"admin: {listen: \""+admin+"\"}\n")
	m.steps = slices.DeleteFunc(page.Steps, func(s guide.Step) bool { return s.Title == "Settings" })
	m.register()
	m.bridge()
	m.versions = follow(t, m.api, map[string][]string{"carts": {"127.0.0.1"}, "orders": {"127.0.0.2"}})
	for _, service := range []string{"carts", "orders"} {
		client := dialAs(t, istiod, "client", "shop", service+":"+m.port)
		client.AwaitAnswers(service)
		m.traffic = append(m.traffic, client.KeepCalling())
	}
	return m
}

// register has two services in the registry, and what the earlier bridge put there.
func (m *migration) register() {
	for i, service := range []string{"carts", "orders"} {
		address := fmt.Sprintf("127.0.0.%d:%s", i+1, m.port)
		startBackend(m.t, service, address)
		m.registry.Add(service, address)
	}
	m.ghost = m.registry.Register(servicecenter.Service{App: "shop", Name: "servicecenter-watcher", Version: "0.0.1"})
}

// bridge has the earlier bridge, and its objects: of one service that has left the
// registry, and with an instance that has.
func (m *migration) bridge() {
	m.apply(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: servicecomb-service-center-istio, namespace: istio-system}
spec:
  replicas: 1
  selector: {matchLabels: {app: bridge}}
  template:
    metadata: {labels: {app: bridge}}
    spec: {containers: [{name: bridge, image: bridge}]}
`, "deployments")
	for service, addresses := range map[string][]string{"carts": {"127.0.0.1", "127.0.0.9"}, "orders": {"127.0.0.2"}, "stock": {"127.0.0.3"}} {
		m.apply(m.earlier(service, addresses...), "serviceentries")
	}
}

// earlier is an object as the earlier bridge writes it.
func (m *migration) earlier(service string, addresses ...string) string {
	text := strings.ReplaceAll(`
apiVersion: networking.istio.io/v1alpha3
kind: ServiceEntry
metadata: {name: `+service+`, namespace: istio-system}
spec:
  hosts: [`+service+`]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{name: GRPC-8080, number: 8080, targetPort: 8080, protocol: GRPC}]
  endpoints:
`, "8080", m.port)
	for _, address := range addresses {
		text += fmt.Sprintf("  - {address: %s, ports: {GRPC-%[2]s: %[2]s}, labels: {name: host, instanceId: 5afe}}\n", address, m.port)
	}
	return text
}

// apply creates an object as the earlier bridge would.
func (m *migration) apply(manifest, resource string) {
	m.t.Helper()
	o, err := object(manifest)
	if err == nil {
		err = m.api.client.As("servicecenter-istio").Create(m.t.Context(), o, resource)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// rightsAreNamed is that a dry run names what is missing before anything is given,
// and that what it prints is what the guide has applied.
func (m *migration) rightsAreNamed() {
	_, err := m.Try("isthmus serve --config isthmus.yaml --dry-run")
	if err == nil {
		m.t.Fatal("without any rights there was a dry run")
	}
	for _, part := range []string{
		account, "get, list, watch serviceentries.networking.istio.io in all namespaces",
		"create, update, patch, delete serviceentries", "get, create, update leases.coordination.k8s.io isthmus in namespace istio-system",
	} {
		if !strings.Contains(err.Error(), part) {
			m.t.Errorf("the dry run does not name %q: %v", part, err)
		}
	}
	_, printed, _ := strings.Cut(err.Error(), "try again:\n")
	if diff := cmp.Diff(manifests(m.t, m.steps[0].Blocks[0].Text), manifests(m.t, printed)); diff != "" {
		m.t.Errorf("the manifest of the guide is not the one that is printed (+):\n%s", diff)
	}
}

// manifests are the objects of a text.
func manifests(t *testing.T, text string) (list []map[string]any) {
	t.Helper()
	for manifest := range strings.SplitSeq(text, "---\n") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(manifest), &o); err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		if o != nil {
			list = append(list, o)
		}
	}
	return list
}

func (m *migration) rightsAreGiven() {
	await(m.t, "the rights of the guide to be all", func() error { // once the API server knows of them
		out, err := m.Try("isthmus serve --config isthmus.yaml --dry-run -o json")
		if err == nil && !strings.Contains(out, `"missing": []`) {
			err = fmt.Errorf("the dry run says %s", out)
		}
		return err
	})
}

// nothingIsOurs is that Isthmus has not touched any object of the earlier bridge.
func (m *migration) nothingIsOurs() {
	for _, service := range []string{"carts", "orders", "stock"} {
		if o := m.entry(service); o.GetGeneration() != 1 || len(o.GetLabels()) > 0 {
			m.t.Errorf("%s was touched: %v", service, o.Object)
		}
	}
}

func (m *migration) entry(service string) entry {
	m.t.Helper()
	o, err := m.api.client.Get(m.t.Context(), cluster.ServiceEntries, cluster.RootNamespace, service)
	if err != nil {
		m.t.Fatal(err)
	}
	return entry{o}
}

func (m *migration) bridgeIsStopped() {
	replicas := m.api.deployment("servicecomb-service-center-istio")
	if replicas != 0 {
		m.t.Errorf("the earlier bridge has %d replicas", replicas)
	}
}

// isOurs is that an object was corrected at once, and belongs to nobody else.
func (m *migration) isOurs(service string) {
	o := m.api.awaitWritten(cluster.RootNamespace, service)
	if got := o.GetGeneration(); got != 1+1 {
		m.t.Errorf("%s: the specification was changed %d times", service, got-1)
	}
	for _, port := range (entry{o}).list("ports") {
		if p, _ := port.(fields); p["name"] != "GRPC-"+m.port {
			m.t.Errorf("%s: istiod may miss its endpoints for a moment, since its port was renamed: %v", service, port)
		}
	}
	mustBeOnlyOurs(m.t, o)
}

// registryIsFollowed is that what comes in the registry comes to the object.
func (m *migration) registryIsFollowed() {
	m.registry.Add("carts", "127.0.0.9:"+m.port)
	m.api.awaitEndpoints(cluster.RootNamespace, "carts", 2)
	m.registry.Remove("carts", "127.0.0.9:"+m.port)
	m.api.awaitEndpoints(cluster.RootNamespace, "carts", 1)
}

func (m *migration) abandonedIsGone() {
	await(m.t, "stock to go", func() error { return m.absent("stock") })
	if got := m.api.deleted(cluster.RootNamespace); !slices.Equal(got, []string{"stock"}) {
		m.t.Errorf("deleted were %q", got)
	}
}

func (m *migration) absent(name string) error {
	objects, err := m.api.client.List(m.t.Context(), cluster.ServiceEntries, cluster.RootNamespace, "")
	for _, o := range objects {
		if o.GetName() == name {
			err = errors.New("it is there")
		}
	}
	return err
}

// registryIsClean is that the consumer of the earlier bridge is neither in the
// registry nor in the mesh.
func (m *migration) registryIsClean() {
	out, err := m.Try("curl -sSf " + m.registry.URL() + "/v4/default/registry/microservices")
	if err != nil || strings.Contains(out, m.ghost) || !strings.Contains(out, "carts") {
		m.t.Errorf("the registry has %s (%v)", out, err)
	}
	await(m.t, "the bridge's consumer to leave the mesh", func() error { return m.absent("servicecenter-watcher") })
}

// nothingIsOursAnyMore is that everything stays when Isthmus has gone, that it
// touches nothing any more, and that the earlier bridge keeps what it finds.
func (m *migration) nothingIsOursAnyMore() {
	await(m.t, "Isthmus to end", func() error {
		if p := m.isthmus(); p != nil {
			return fmt.Errorf("process %d is there", p.Pid)
		}
		return nil
	})
	if replicas := m.api.deployment("servicecomb-service-center-istio"); replicas != 1 {
		m.t.Errorf("the earlier bridge has %d replicas", replicas)
	}
	before := len(m.api.WritesBy(account, cluster.RootNamespace))
	for _, service := range []string{"carts", "orders"} {
		o := m.entry(service)
		if len(o.GetLabels()) > 0 || len(o.list("endpoints")) != 1 {
			m.t.Errorf("%s is left as %v", service, o.Object)
		}
		// The earlier bridge replaces all but the endpoints and the ports at its start.
		await(m.t, "the earlier bridge to write "+service, func() error { // again if istiod has written its status meanwhile
			o := m.entry(service)
			o.SetAnnotations(nil)
			o.SetManagedFields(nil)
			return m.api.client.As("servicecenter-istio").Update(m.t.Context(), cluster.ServiceEntries, o.Unstructured)
		})
	}
	if got := m.api.deleted(cluster.RootNamespace); !slices.Equal(got, []string{"stock"}) {
		m.t.Errorf("deleted were %q", got)
	}
	if writes := m.api.WritesBy(account, cluster.RootNamespace)[before:]; len(writes) > 0 {
		m.t.Errorf("Isthmus has ended, and wrote %+v", writes)
	}
	if _, err := os.Stat(filepath.Join(m.Dir, "data")); err != nil {
		m.t.Errorf("what Isthmus stored is gone: %v", err)
	}
}
