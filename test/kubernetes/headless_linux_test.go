package kubernetes_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/netns"
	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

const headlessObjects = `
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: zk}
  spec: {clusterIP: None, ports: [{name: tcp-client, port: 2181}, {name: any, port: 9000}]}
- apiVersion: v1
  kind: Service
  metadata: {namespace: shop, name: db}
  spec: {clusterIP: None, ports: [{name: tcp-db, port: 2181}]}
`

// Where Envoy and the workload connect from. Only what comes from elsewhere than from Envoy
// is redirected to it.
const (
	fromEnvoy    = "10.77.9.1"
	fromWorkload = "10.77.9.9"
)

// Each connection to a pod of a headless service reaches that pod, and no other of the
// service or of another one of the same port. A pod that takes the place of another is
// followed, and nobody else is reached.
func TestPodsOfHeadlessServicesAreCalledByAddress(t *testing.T) {
	if t.Parallel(); separately(t) {
		return
	}
	c := own(t)
	client := connect(t, c)
	if err := client.Namespace(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects(t, headlessObjects) {
		if err := client.Apply(t.Context(), services, o); err != nil {
			t.Fatal(err)
		}
	}
	apply := func(service, ports, pods string) {
		t.Helper()
		slice := object(t, `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, metadata: {namespace: shop, name: %[1]s-1, labels: {kubernetes.io/service-name: %[1]s}},
ports: [%[2]s], endpoints: [%[3]s]}`, service, ports, pods)
		if err := client.Apply(t.Context(), slicesOf, slice); err != nil {
			t.Fatal(err)
		}
	}
	const ofZooKeeper, ofDatabase = `{name: tcp-client, port: 2181}, {name: any, port: 9000}`, `{name: tcp-db, port: 2181}`
	apply("zk", ofZooKeeper, `{addresses: [10.77.2.1], hostname: zk-0}, {addresses: [10.77.2.2], hostname: zk-1}`)
	apply("db", ofDatabase, `{addresses: [10.77.2.4]}`)
	if err := netns.AddAddress(netip.MustParseAddr(fromEnvoy)); err != nil { // with all of its block
		t.Fatal(err)
	}
	pods := map[string]string{"10.77.2.1": "zk-0", "10.77.2.2": "zk-1", "10.77.2.3": "the new zk-1", "10.77.2.4": "db", "10.77.2.5": "nobody"}
	for address, name := range pods {
		startPod(t, name, address)
		if err := netns.Redirect(netip.MustParseAddr(address), 15001, netip.MustParseAddr(fromEnvoy)); err != nil {
			t.Fatal(err)
		}
	}
	i := serveIsthmus(t, t.TempDir(), fmt.Sprintf(`
sources: [{name: here, kubernetes: {kubeconfig: %s}}]
outputs: {xds: {listen: "127.0.0.1:0", envoy: {outbound: registry}}}
admin: {listen: "127.0.0.1:0"}
`, kubeconfig(t, c.API, cluster.Admin)))
	p := connectEnvoy(t, i, proxy.Config{Delta: true, Redirected: true, IP: fromWorkload, Workload: "caller"})

	reached := func(addresses ...string) {
		t.Helper()
		for address, name := range pods {
			want := ""
			for _, a := range addresses {
				if a == address {
					want = name
				}
			}
			await(t, fmt.Sprintf("%s to be %q", address, want), func() error {
				got, err := greeted(t.Context(), fromWorkload, address)
				switch {
				case got != "" && got != name:
					t.Fatalf("the connection to %s has reached %q", address, got)
				case got != want:
					return fmt.Errorf("it is %q: %w", got, err)
				}
				return nil
			})
		}
	}
	reached("10.77.2.1", "10.77.2.2", "10.77.2.4")
	if got, err := greeted(t.Context(), fromEnvoy, "10.77.2.5"); got != "nobody" {
		t.Errorf("who is not redirected reaches %q (%v)", got, err)
	}
	for _, address := range []string{"10.77.2.1", "10.77.2.2"} {
		await(t, "requests to "+address, func() error { return asked(t.Context(), address, pods[address]) })
	}
	apply("zk", ofZooKeeper, `{addresses: [10.77.2.1], hostname: zk-0}, {addresses: [10.77.2.3], hostname: zk-1}`)
	reached("10.77.2.1", "10.77.2.3", "10.77.2.4")
	if err := p.Rejected(t.Context()); err != nil {
		t.Errorf("the Envoy has rejected something: %v", err)
	}
}

// startPod starts servers that say their name, as the first of the two or to whoever asks.
func startPod(t *testing.T, name, address string) {
	t.Helper()
	listeners := map[string]net.Listener{}
	for _, port := range []string{"2181", "9000"} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(address, port))
		if err != nil {
			t.Fatal(err)
		}
		listeners[port] = l
	}
	var served sync.WaitGroup
	server := &http.Server{ReadHeaderTimeout: until.Patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })}
	served.Go(func() { _ = server.Serve(listeners["9000"]) })
	served.Go(func() {
		for {
			connection, err := listeners["2181"].Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(connection, name+"\n")
			_ = connection.Close()
		}
	})
	t.Cleanup(func() { _ = server.Close(); _ = listeners["2181"].Close(); served.Wait() })
}

// dialer connects from an address.
func dialer(from string) *net.Dialer {
	return &net.Dialer{Timeout: 5 * time.Second, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 0))}
}

// greeted returns what the server of a pod says first, and nothing if it says nothing.
func greeted(ctx context.Context, from, address string) (string, error) {
	connection, err := dialer(from).DialContext(ctx, "tcp", address+":2181")
	if err != nil {
		return "", err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	said, err := bufio.NewReader(connection).ReadString('\n')
	return strings.TrimSuffix(said, "\n"), err
}

// asked makes a request to a pod by its address, as whoever has looked up its name.
func asked(ctx context.Context, address, want string) error {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: dialer(fromWorkload).DialContext, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+":9000/", http.NoBody)
	if err != nil {
		return err
	}
	request.Host = want + ".zk.shop.svc.cluster.local:9000"
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if string(text) != want {
		err = errors.Join(err, fmt.Errorf("%s: %q answers, not %q", response.Status, text, want))
	}
	return err
}
