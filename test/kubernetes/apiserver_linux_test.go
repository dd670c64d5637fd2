package kubernetes_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/netns"
	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// apiServerIP is the address of the Service default/kubernetes, in both clusters: the first
// of their range. No service has the other address.
const apiServerIP, unknownIP = "10.0.0.1", "10.0.0.2"

// A sidecar that calls nothing but services of the registry calls the API server of its own
// cluster, of two that are read. Connections are redirected to one, and another listens on
// loopback. Whoever answers is told by its certificate.
func TestSidecarCallsTheAPIServerOfItsCluster(t *testing.T) {
	if t.Parallel(); separately(t) {
		return
	}
	if err := netns.AddAddress(netip.MustParseAddr(fromEnvoy)); err != nil { // with all of its block
		t.Fatal(err)
	}
	behind := map[string]*atomic.Value{}
	for _, address := range []string{apiServerIP, unknownIP} {
		behind[address] = forward(t, address+":443") // as kube-proxy does in each cluster
		if err := netns.Redirect(netip.MustParseAddr(address), 15001, netip.MustParseAddr(fromEnvoy)); err != nil {
			t.Fatal(err)
		}
	}
	clusters := map[string]*cluster.Cluster{"east": own(t), "west": own(t)}
	for name, address := range map[string]string{"east": "10.77.4.1", "west": "10.77.4.2"} {
		forward(t, address+":6443").Store(reach(t, clusters[name]).address)
		slice := object(t, `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4,
metadata: {namespace: default, name: kubernetes, labels: {kubernetes.io/service-name: kubernetes}}, ports: [{name: https, port: 6443}], endpoints: [{addresses: [%s]}]}`, address)
		if err := connect(t, clusters[name]).Apply(t.Context(), slicesOf, slice); err != nil {
			t.Fatal(err)
		}
	}
	i := serveIsthmus(t, t.TempDir(), fmt.Sprintf(`
sources:
- {name: east, kubernetes: {kubeconfig: %s, cluster: east}}
- {name: west, kubernetes: {kubeconfig: %s, cluster: west}}
outputs: {xds: {listen: "127.0.0.1:0", envoy: {outbound: registry}}}
admin: {listen: "127.0.0.1:0"}
`, kubeconfig(t, clusters["east"].API, cluster.Admin), kubeconfig(t, clusters["west"].API, cluster.Admin)))

	for of, delta := range map[string]bool{"east": true, "west": false} {
		api := reach(t, clusters[of])
		for _, to := range behind {
			to.Store(api.address)
		}
		called := func(p *proxy.Proxy, at, host string) {
			t.Helper()
			await(t, fmt.Sprintf("%s to call %s at %s", p.Name, host, at), func() error { return api.answers(t.Context(), at, host) })
			for range 10 { // the other cluster has an endpoint, too
				if err := api.answers(t.Context(), at, host); err != nil {
					t.Errorf("%s calls %s at %s: %v", p.Name, host, at, err)
				}
			}
		}
		settled := func(p *proxy.Proxy) {
			t.Helper()
			if err := p.Rejected(t.Context()); err != nil {
				t.Errorf("%s has rejected something: %v", p.Name, err)
			}
			p.Stop() // the next one listens at the same ports
		}
		at := []string{"--cluster", of}
		p := connectEnvoy(t, i, proxy.Config{Delta: delta, Redirected: true, IP: fromWorkload, Workload: "redirected-" + of, Flags: at})
		called(p, apiServerIP+":443", apiServerIP)
		called(p, apiServerIP+":443", "kubernetes.default.svc")
		if err := api.answers(t.Context(), unknownIP+":443", unknownIP); err == nil {
			t.Error("an address of no service is called")
		}
		settled(p)
		p = connectEnvoy(t, i, proxy.Config{Delta: delta, Listeners: true, Workload: "explicit-" + of, Flags: at})
		called(p, "127.0.0.1:443", "kubernetes.default.svc.cluster.local")
		settled(p)
	}
}

// forward passes connections to an address on to another, which may change.
func forward(t *testing.T, address string) *atomic.Value {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	var to atomic.Value
	var work sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	work.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			work.Go(func() { join(ctx, near, to.Load().(string)) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); cancel(); work.Wait() })
	return &to
}

// join passes on what both sides of a connection say, until one ends.
func join(ctx context.Context, near net.Conn, address string) {
	defer near.Close()
	far, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer far.Close()
	stop := context.AfterFunc(ctx, func() { _, _ = near.Close(), far.Close() })
	defer stop()
	var back sync.WaitGroup
	back.Go(func() { _, _ = io.Copy(near, far); _ = near.Close() })
	_, _ = io.Copy(far, near)
	_ = far.Close()
	back.Wait()
}

// reached is an API server, as clients know it.
type reached struct {
	address string
	token   string
	roots   *x509.CertPool // the authorities of its own certificate
}

func reach(t *testing.T, c *cluster.Cluster) *reached {
	t.Helper()
	config, err := c.API.Config(cluster.Admin)
	if err != nil {
		t.Fatal(err)
	}
	authorities, err := os.ReadFile(config.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	r := &reached{strings.TrimPrefix(config.Host, "https://"), config.BearerToken, x509.NewCertPool()}
	if !r.roots.AppendCertsFromPEM(authorities) {
		t.Fatalf("there is no authority in %q", authorities)
	}
	return r
}

// verify checks that it is this API server that answers. Its certificate has no name with the
// domain of the cluster.
func (r *reached) verify(state tls.ConnectionState) error {
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: r.roots, DNSName: "kubernetes.default.svc"})
	return err
}

// answers checks that a request to an address is answered by this API server, over a
// connection of its own.
func (r *reached) answers(ctx context.Context, at, host string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+"/version", http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+r.token)
	from := dialer(fromWorkload)
	if netip.MustParseAddrPort(at).Addr().IsLoopback() {
		from.LocalAddr = nil
	}
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return from.DialContext(ctx, "tcp", at) },
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, VerifyConnection: r.verify}, //nolint:gosec // it is verified
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		return errors.Join(err, errors.New(response.Status))
	}
	return nil
}
