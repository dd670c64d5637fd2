package istio_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/isthmus-mesh/isthmus/test/envoy/netns"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// threeServices are three services without addresses at the same ports, as a Service Center lists
// them, a database without an address, and a database with resolution DNS.
const threeServices = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec: {hosts: [cart.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 8080, name: rest, protocol: HTTP}, {number: 7070, name: highway, protocol: TCP}], endpoints: [{address: 10.200.0.1}]}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: orders, namespace: shop}
spec: {hosts: [orders.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 8080, name: rest, protocol: HTTP}, {number: 7070, name: highway, protocol: TCP}], endpoints: [{address: 10.200.0.2}]}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: stock, namespace: shop}
spec: {hosts: [stock.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 8080, name: rest, protocol: HTTP}, {number: 7070, name: highway, protocol: TCP}], endpoints: [{address: 10.200.0.3}]}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: db, namespace: shop}
spec: {hosts: [db.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 3306, name: mysql, protocol: TCP}], endpoints: [{address: 10.200.0.4}]}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: outside, namespace: shop}
spec: {hosts: [outside.example], resolution: DNS, ports: [{number: 5432, name: db, protocol: TCP}], endpoints: [{address: 10.200.0.5}]}
`

// plaintext has istiod ask workloads for no certificates, which Istio's agent would get.
const plaintext = `
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: default, namespace: istio-system}
spec: {mtls: {mode: DISABLE}}
`

// TestWhoIsDialledBehindIstiod has a workload behind an istiod dial instances of services without
// addresses, and machines of no service. docs/istio.md says when the machine that is dialled answers.
func TestWhoIsDialledBehindIstiod(t *testing.T) {
	t.Parallel()
	if os.Getenv(inNamespace) == "" {
		status, err := netns.Run([]string{"-test.run", "^" + t.Name() + "$", "-test.v"}, inNamespace+"=1")
		if err != nil || status != 0 {
			t.Fatal(errors.Join(err, fmt.Errorf("it ended with status %d", status)))
		}
		return
	}
	const answering = 19999
	if err := netns.Answer(answering, 15001); err != nil {
		t.Fatal(err)
	}
	answerLines(t, fmt.Sprintf("127.0.0.1:%d", answering))
	for _, c := range []unaddressed{
		{objects: true, allots: true, captures: true},
		{objects: true, allots: true},
		{objects: true, captures: true},
		{allots: true, captures: true},
	} {
		t.Run(fmt.Sprintf("%+v", c), c.run)
	}
}

// unaddressed is how an istiod takes the services.
type unaddressed struct {
	objects  bool // of Kubernetes, else MCP-over-xDS
	allots   bool // istiod gives addresses to ServiceEntries without addresses
	captures bool // the proxy answers lookups
}

func (c unaddressed) run(t *testing.T) {
	k := startCluster(t)
	a := connect(t, k)
	a.Namespace("shop")
	a.Namespace(cluster.RootNamespace)
	a.Apply(schema.GroupVersionResource{Group: "security.istio.io", Version: "v1", Resource: "peerauthentications"}, plaintext)
	folder, address := t.TempDir(), "127.0.0.1:"+freePort(t)
	if err := os.WriteFile(filepath.Join(folder, "services.yaml"), []byte(threeServices), 0o600); err != nil {
		t.Fatal(err)
	}
	output, mesh := fmt.Sprintf("xds: {listen: %q}", address), fmt.Sprintf("configSources: [{address: \"xds://%s\"}, {address: \"k8s://\"}]\n", address)
	if c.objects {
		kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
		if err := k.API.WriteKubeconfig(kubeconfig, "isthmus", group); err != nil {
			t.Fatal(err)
		}
		output, mesh = fmt.Sprintf("istio: {kubeconfig: %q, leaderElection: {name: it}}", kubeconfig), ""
	}
	serveConfig(t, "isthmus", fmt.Sprintf("instance: it\nsources: [{name: files, required: true, file: {path: %q}}]\noutputs: {%s}\nadmin: {listen: \"127.0.0.1:0\"}\n", folder, output))
	ctx, cancel := context.WithTimeout(t.Context(), starts)
	defer cancel()
	i, err := k.StartIstiodWith(ctx, mesh, fmt.Sprintf("PILOT_ENABLE_IP_AUTOALLOCATE=%t", c.allots))
	if err != nil {
		t.Fatal(err)
	}
	p, err := k.StartEnvoy(ctx, i, cluster.Sidecar{
		Workload: "client", Namespace: "shop", Delta: true, Redirected: true, Metadata: map[string]string{"DNS_CAPTURE": fmt.Sprint(c.captures)},
	})
	if err != nil {
		t.Fatal(err)
	}
	instances := map[string]string{"cart.example": "10.200.0.1:7070", "orders.example": "10.200.0.2:7070", "stock.example": "10.200.0.3:7070", "db.example": "10.200.0.4:3306", "outside.example": "10.200.0.5:5432"}
	own := c.objects && c.allots && c.captures
	if own {
		for host, want := range instances {
			await(t, "connections to the address that istiod gave "+host, func() error {
				at, err := a.allotted(t.Context(), host)
				if err != nil {
					return err
				}
				_, port, _ := strings.Cut(want, ":")
				return answeredBy(t.Context(), at+":"+port, want)
			})
		}
	}
	for port, by := range map[string][]string{"7070": {instances["cart.example"], instances["orders.example"], instances["stock.example"]}, "3306": {instances["db.example"]}, "5432": {instances["outside.example"]}} {
		for _, to := range append([]string{"10.202.0.1:" + port}, by...) {
			servers := by // the first service of the port that istiod has
			if own {
				servers = []string{to}
			}
			await(t, "a connection to "+to, func() error { return answeredBy(t.Context(), to, servers...) })
		}
	}
	if first := dialled(t.Context(), "10.202.0.1:7070"); !own {
		for _, of := range []string{"cart.example", "orders.example", "stock.example"} {
			if err := answeredBy(t.Context(), instances[of], first); err != nil {
				t.Error(err)
			}
		}
	}
	p.Stop() // the next one has its port
}

// allotted returns the IPv4 address that istiod gave a host.
func (a *api) allotted(ctx context.Context, host string) (string, error) {
	all, err := a.client.List(ctx, cluster.ServiceEntries, "shop", "")
	for _, entry := range all {
		addresses, _, _ := unstructured.NestedSlice(entry.Object, "status", "addresses")
		for _, of := range addresses {
			given, _ := of.(map[string]any)
			if value := fmt.Sprint(given["value"]); given["host"] == host && !strings.Contains(value, ":") {
				return value, nil
			}
		}
	}
	return "", cmp.Or(err, fmt.Errorf("%s has none", host))
}

// answeredBy checks that one of some servers answers a connection of the workload.
func answeredBy(ctx context.Context, to string, servers ...string) error {
	if got := dialled(ctx, to); !slices.Contains(servers, got) {
		return fmt.Errorf("%s is answered by %s, not by one of %v", to, got, servers)
	}
	return nil
}

// answerLines answers each line with the address and port that the connection was meant for.
func answerLines(t *testing.T, at string) {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer c.Close()
				meant, err := netns.OriginalDestination(c.(*net.TCPConn))
				_ = c.SetDeadline(time.Now().Add(until.Patience))
				if _, failed := bufio.NewReader(c).ReadString('\n'); err == nil && failed == nil {
					_, _ = io.WriteString(c, meant.String()+"\n")
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
}

// dialled returns the server that answers a connection of the workload to an address and port, or
// "nobody".
func dialled(ctx context.Context, to string) string {
	d := net.Dialer{Timeout: until.Patience, Control: netns.Marked(netns.Redirected)}
	c, err := d.DialContext(ctx, "tcp", to)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(until.Patience))
	if _, err := io.WriteString(c, "who is there?\n"); err != nil {
		return err.Error()
	}
	answer, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return "nobody"
	}
	return strings.TrimSpace(answer)
}
