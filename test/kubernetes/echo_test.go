package kubernetes_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/instance"
)

// side is a cluster with an Isthmus that reads it, another one and files, and writes to it.
type side struct {
	t      *testing.T
	name   string
	api    *cluster.APIServer
	client *cluster.Client
}

func newSide(t *testing.T, name string) *side {
	c := own(t)
	s := &side{t: t, name: name, api: c.API, client: connect(t, c)}
	for _, namespace := range []string{"shop", "files"} {
		if err := s.client.Namespace(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// enter writes a Service with an endpoint.
func (s *side) enter(service, address string) {
	s.t.Helper()
	for _, o := range objects(s.t, `
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: %[1]s}
  spec: {ports: [{name: http, port: 80}]}
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  metadata: {namespace: shop, name: %[1]s-1, labels: {kubernetes.io/service-name: %[1]s}}
  addressType: IPv4
  ports: [{name: http, port: 8080}]
  endpoints: [{addresses: [%[2]q]}]
`, service, address) {
		if err := s.client.Apply(s.t.Context(), resources[o.GetKind()], o); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *side) leave(service string) {
	s.t.Helper()
	if err := s.client.Delete(s.t.Context(), slicesOf, "shop", service+"-1"); err != nil {
		s.t.Fatal(err)
	}
	if err := s.client.Delete(s.t.Context(), services, "shop", service); err != nil {
		s.t.Fatal(err)
	}
}

// serve runs the Isthmus of this side.
func (s *side) serve(other *side) {
	s.t.Helper()
	dir := s.t.TempDir()
	for name, text := range map[string]string{
		"files/entry.yaml": fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: legacy, namespace: files}
spec: {hosts: [legacy.%s], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, endpoints: [{address: 10.8.0.1}]}
`, s.name),
		"isthmus.yaml": fmt.Sprintf(`
instance: %[1]s
sources:
- {name: files, file: {path: files}}
- {name: near, kubernetes: {kubeconfig: %[2]s, cluster: %[1]s}}
- {name: far, kubernetes: {kubeconfig: %[3]s, cluster: %[4]s}}
outputs: {istio: {kubeconfig: %[2]s, debounce: {quiet: 50ms, max: 500ms}, leaderElection: {enabled: false}}}
admin: {listen: "127.0.0.1:0"}
`, s.name, kubeconfig(s.t, s.api, cluster.Admin), kubeconfig(s.t, other.api, cluster.Admin), other.name),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	c, err := config.Load(filepath.Join(dir, "isthmus.yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	instance.Run(s.t, c)
}

// mustHave waits until the ServiceEntries of this side are those of some hosts.
func (s *side) mustHave(hosts ...string) {
	s.t.Helper()
	slices.Sort(hosts)
	await(s.t, s.name+" has "+fmt.Sprint(hosts), func() error {
		list, err := s.client.List(s.t.Context(), cluster.ServiceEntries, "", "")
		if err != nil {
			return err
		}
		var have []string
		for _, o := range list {
			spec, _ := o.Object["spec"].(map[string]any)
			of, _ := spec["hosts"].([]any)
			for _, host := range of {
				have = append(have, fmt.Sprint(host))
			}
		}
		if slices.Sort(have); !slices.Equal(have, hosts) {
			return fmt.Errorf("it has %v", have)
		}
		return nil
	})
}

// writes counts what was written to Istio's objects.
func (s *side) writes() (count int) {
	s.t.Helper()
	for _, namespace := range []string{"shop", "files"} {
		list, err := s.api.Writes(namespace)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			s.t.Fatal(err)
		}
		for _, w := range list {
			if w.Changed() {
				count++
			}
		}
	}
	return count
}

// Two Isthmuses read both clusters, and each writes to its own. A service goes to the
// other cluster once, never comes back from there, and leaves with its Service. What one
// writes is no registry's word for the other.
func TestTwoThatReadEachOthersClustersEndWithoutAnEcho(t *testing.T) {
	t.Parallel()
	one, two := newSide(t, "one"), newSide(t, "two")
	one.enter("here", "10.1.0.1")
	two.enter("there", "10.2.0.1")
	one.enter("both", "10.1.0.2")
	two.enter("both", "10.2.0.2")
	one.serve(two)
	two.serve(one)
	const here, there, both = "here.shop.svc.cluster.local", "there.shop.svc.cluster.local", "both.shop.svc.cluster.local"
	one.mustHave("legacy.one", there, both)
	two.mustHave("legacy.two", here, both)
	if a, b := one.writes(), two.writes(); a != 3 || b != 3 {
		t.Errorf("%d and %d objects were written; there are 3 services to write on each side", a, b)
	}

	two.leave("there")
	two.leave("both")
	two.enter("late", "10.2.0.3")
	const late = "late.shop.svc.cluster.local"
	one.mustHave("legacy.one", late)
	one.mustName("shop", late, "10.2.0.3") // its slice comes after it
	two.mustHave("legacy.two", here, both)
	one.leave("both")
	one.leave("here")
	two.mustHave("legacy.two")
	one.mustHave("legacy.one", late)
	// Of an echo, more would be written again and again: the debounces are over many
	// times in this while.
	before := []int{one.writes(), two.writes()}
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); <-time.After(100 * time.Millisecond) {
		one.mustHave("legacy.one", late)
		two.mustHave("legacy.two")
	}
	if after := []int{one.writes(), two.writes()}; !slices.Equal(before, after) {
		t.Errorf("in a world that does not change %v writes became %v", before, after)
	}
}
