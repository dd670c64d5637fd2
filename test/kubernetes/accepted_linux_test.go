package kubernetes_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

var (
	seed      = flag.Uint64("seed", 16, "of what is drawn")
	somewhere = flag.Int("services", 1500, "how many Services an Envoy is given")
)

// Any Services that an API server takes, an Envoy takes: it rejects nothing, waits for
// nothing, and has what the slices say. That holds for a sidecar whose connections are
// redirected, in both variants of the protocol, and while a part of them is replaced.
func TestEnvoyTakesAnyServices(t *testing.T) {
	if t.Parallel(); separately(t) {
		return
	}
	c := own(t)
	d := &drawn{t: t, Rand: rand.New(rand.NewPCG(*seed, 16)), client: connect(t, c), endpoints: map[string]int{}}
	if err := d.client.Namespace(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	d.write(0, *somewhere)
	i := serveIsthmus(t, t.TempDir(), fmt.Sprintf(`
sources: [{name: here, kubernetes: {kubeconfig: %s}}]
outputs: {xds: {listen: "127.0.0.1:0"}}
admin: {listen: "127.0.0.1:0"}
`, kubeconfig(t, c.API, cluster.Admin)))
	var proxies []*proxy.Proxy
	for _, delta := range []bool{true, false} {
		proxies = append(proxies, connectEnvoy(t, i, proxy.Config{Delta: delta, Redirected: true, Workload: fmt.Sprintf("delta-%t", delta)}))
	}
	for round := range 3 {
		for _, p := range proxies {
			await(t, "the Services in "+p.Name, func() error { return d.differs(p) })
			await(t, "nothing to be warming", func() error { return p.Unsettled(t.Context()) })
			if err := p.Rejected(t.Context()); err != nil {
				t.Fatalf("%s has rejected something: %v", p.Name, err)
			}
		}
		d.write(round*50, round*50+100) // the same names, with something else
	}
	t.Logf("%d clusters with endpoints of slices", len(d.endpoints))
}

// led is for clusters of headless Services: connections of redirected clients go to the
// pod that they were made to. Requests are balanced.
const led = -1

// drawn is what a test has written.
type drawn struct {
	*rand.Rand
	t      *testing.T
	client *cluster.Client

	mu        sync.Mutex
	endpoints map[string]int // that are due, by cluster; led if there are none, but the client chooses
}

// write replaces Services.
func (d *drawn) write(from, to int) {
	d.t.Helper()
	var writing sync.WaitGroup
	limit, failed := make(chan struct{}, 16), make(chan error, 2*(to-from))
	for n := from; n < to; n++ {
		service, slice := d.service(n)
		limit <- struct{}{}
		writing.Go(func() {
			defer func() { <-limit }()
			ctx := d.t.Context()
			if err := d.remove(ctx, service); err != nil {
				failed <- err
				return
			}
			failed <- errors.Join(d.client.Apply(ctx, services, service), d.client.Apply(ctx, slicesOf, slice))
		})
	}
	writing.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			d.t.Fatal(err)
		}
	}
}

// remove removes a Service that may be there: one cannot become any other.
func (d *drawn) remove(ctx context.Context, service *unstructured.Unstructured) error {
	if _, err := d.client.Get(ctx, services, "shop", service.GetName()); err != nil {
		return nil //nolint:nilerr // it is not there
	}
	return d.client.Delete(ctx, services, "shop", service.GetName())
}

// requests are the ports that say that they carry them: by application protocol, or
// without one by name.
var requests = regexp.MustCompile(`appProtocol: (http|kubernetes.io/h2c)\}|name: (http|grpc)-[^}]*TCP\}`)

// pick picks one of several.
func (d *drawn) pick(list ...string) string { return list[d.IntN(len(list))] }

// service draws a Service and its slice, and notes which endpoints are due.
func (d *drawn) service(n int) (service, slice *unstructured.Unstructured) {
	name := fmt.Sprintf("s-%d", n)
	host := name + ".shop.svc.cluster.local"
	spec, external := d.kind(n)
	ports, slicePorts := d.ports()
	service = object(d.t, `{apiVersion: v1, kind: Service, metadata: {namespace: shop, name: %s}, spec: {%s ports: [%s]}}`, name, spec, strings.Join(ports, ", "))
	slice = object(d.t, `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, metadata: {namespace: shop, name: %s-1, labels: {kubernetes.io/service-name: %s}}, ports: [%s]}`,
		name, name, strings.Join(slicePorts, ", "))
	var endpoints []any
	ready := 0
	for e := range d.IntN(4) {
		isReady := d.IntN(4) > 0
		one := map[string]any{
			"addresses": []any{fmt.Sprintf("10.78.%d.%d", n%200, 10+e)}, "nodeName": d.pick("node-a", "node-b"), "zone": d.pick("a", "b"),
			"conditions": map[string]any{"ready": isReady},
		}
		if d.IntN(5) == 0 {
			one["hostname"] = fmt.Sprintf("pod-%d", e)
		}
		if endpoints = append(endpoints, one); isReady {
			ready++
		}
	}
	slice.Object["endpoints"] = endpoints
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, number := range []int{80, 443, 3306, 9000} {
		delete(d.endpoints, fmt.Sprintf("outbound|%d||%s", number, host))
	}
	if strings.Contains(spec, "publishNotReady") {
		ready = len(endpoints)
	}
	for _, p := range ports {
		var number int
		_, numbered, _ := strings.Cut(p, "port: ")
		if _, err := fmt.Sscan(strings.TrimRight(strings.Fields(numbered)[0], ",}"), &number); err != nil {
			d.t.Fatal(err)
		}
		if external || strings.Contains(p, "UDP") {
			continue
		}
		cluster := fmt.Sprintf("outbound|%d||%s", number, host)
		if d.endpoints[cluster] = ready; strings.Contains(spec, "clusterIP: None") && !requests.MatchString(p) {
			d.endpoints[cluster] = led
		}
	}
	return service, slice
}

// kind draws which kind of Service it is.
func (d *drawn) kind(n int) (spec string, external bool) {
	switch d.IntN(8) {
	case 0:
		return "clusterIP: None,", false
	case 1:
		return "clusterIP: None, publishNotReadyAddresses: true,", false
	case 2:
		return fmt.Sprintf("type: ExternalName, externalName: e-%d.localhost,", n), true
	case 3:
		return "ipFamilyPolicy: PreferDualStack,", false
	case 4:
		return "sessionAffinity: ClientIP,", false
	case 5:
		return "type: NodePort,", false
	default:
		return "", false
	}
}

// ports draws the ports of a Service, and those of its slice.
func (d *drawn) ports() (ofService, ofSlice []string) {
	numbers := d.Perm(4)[:1+d.IntN(3)]
	for at, n := range numbers {
		number := []int{80, 443, 3306, 9000}[n]
		name := fmt.Sprintf("%s%d", d.pick("http-", "grpc-", "tcp-", "tls-", "https-", "mysql-", "odd"), at)
		protocol, app := "TCP", ""
		if d.IntN(12) == 0 {
			protocol = "UDP"
		}
		if said := d.pick("", "", "http", "kubernetes.io/h2c", "tcp", "tls", "what-is-this", "HTTPS", "redis"); said != "" {
			app = ", appProtocol: " + said
		}
		ofService = append(ofService, fmt.Sprintf("{name: %s, port: %d, protocol: %s%s}", name, number, protocol, app))
		ofSlice = append(ofSlice, fmt.Sprintf("{name: %s, port: %d, protocol: %s}", name, 8000+n, protocol))
	}
	return ofService, ofSlice
}

// differs says in which clusters an Envoy differs from what is due.
func (d *drawn) differs(p *proxy.Proxy) error {
	clusters, err := p.Clusters(d.t.Context())
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var wrong []string
	for name, due := range d.endpoints {
		c, there := clusters[name]
		if due == led && c.Type == "ORIGINAL_DST" {
			due = 0
		}
		if !there || len(c.Endpoints) != due {
			wrong = append(wrong, fmt.Sprintf("%s (there: %t) has %d endpoints, and should have %d", name, there, len(c.Endpoints), due))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%d of %d clusters: %s", len(wrong), len(d.endpoints), strings.Join(wrong[:min(4, len(wrong))], "; "))
	}
	return nil
}
