package envoy_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/netns"
	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// inNamespace is set where the tests run that need a network of their own.
const inNamespace = "ISTHMUS_ENVOY_NAMESPACE"

// separately runs a test once more by itself, in a network namespace, and returns false
// where that has been done.
func separately(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inNamespace) != "" {
		if err := netns.RaiseLoopback(); err != nil {
			t.Fatal(err)
		}
		return false
	}
	status, err := netns.Run([]string{"-test.run", "^" + t.Name() + "$", "-test.v", "-seed", fmt.Sprint(*seed)}, inNamespace+"="+programs.isthmus)
	if err != nil || status != 0 {
		t.Fatal(errors.Join(err, fmt.Errorf("it ended with status %d", status)))
	}
	return true
}

// TestSidecarTakesAnyServices has sidecars whose connections are redirected take
// services of every form, while they come, go and change.
func TestSidecarTakesAnyServices(t *testing.T) {
	t.Parallel()
	if separately(t) {
		return
	}
	random := rand.New(rand.NewPCG(*seed, 15))
	m := newMesh(t)
	m.Envoy = settingsOfEnvoys[random.IntN(len(settingsOfEnvoys))]
	t.Logf("outputs.xds.envoy: {%s}", m.Envoy)
	for n := range 40 {
		m.Folder.write(t, fmt.Sprintf("some-%d", n), drawServices(random, n)...)
	}
	m.Serve("")
	for _, delta := range []bool{true, false} {
		m.connectWith(proxy.Config{Delta: delta, Redirected: true})
	}
	m.AwaitActive("the services")
	for _, p := range m.Proxies {
		if listeners, err := p.Listeners(t.Context()); err != nil || listeners["virtualOutbound"].Version == "" {
			t.Fatalf("%s has listeners %v (%v)", p.Name, listeners, err)
		}
	}
	for range 10 {
		for range 8 {
			n := random.IntN(40)
			m.Folder.write(t, fmt.Sprintf("some-%d", n), drawServices(random, n)...)
		}
		m.AwaitActive("the services as they are now")
	}
}

// settingsOfEnvoys are nothing, and as much as there is to say. The collector of spans is
// never there.
var settingsOfEnvoys = []string{"", `outbound: registry, dns: {},
    defaults: {
      connectTimeout: 2s, retries: {attempts: 0}, outlierDetection: {}, circuitBreakers: {maxConnections: 1}, tcpKeepalive: {time: 30s},
      loadBalancer: {consistentHash: {useSourceIp: true}}, accessLog: {path: /dev/null, format: json},
      tracing: {openTelemetry: {host: nobody.example.com, port: 4317}},
    },
    hosts: [{host: "*.localhost", loadBalancer: {simple: RANDOM}}]`}

// drawServices draws what a file says.
func drawServices(random *rand.Rand, file int) (list []object) {
	for n := range 1 + random.IntN(20) {
		resolution := resolutions[random.IntN(len(resolutions))]
		s := service{Name: fmt.Sprintf("s-%d-%d", file, n), Spec: serviceSpec{
			Hosts: []string{drawHost(random, file, n)}, Resolution: resolution,
		}}
		if resolution == "STATIC" {
			s.Spec.Endpoints = []endpoint{{Address: "192.0.2.1"}, {Address: "192.0.2.2"}}
		}
		for p := range 1 + random.IntN(3) {
			s.Spec.Ports = append(s.Spec.Ports, port{
				Number: []uint32{80, 443, 8080, 9000, 15001, 3306}[random.IntN(6)], Name: fmt.Sprintf("p%d", p), Protocol: protocols[random.IntN(len(protocols))],
			})
		}
		s.Spec.Ports = distinct(s.Spec.Ports)
		addresses := []string{"10.1.0.1", "10.1.0.2", "10.1.0.3", "2001:db8::1"}
		if resolution == "STATIC" || resolution == "NONE" { // else they may be no blocks
			addresses = append(addresses, "10.1.0.2/32", "10.2.0.0/16", "10.2.3.0/24", "2001:db8::/64")
		}
		for _, n := range random.Perm(len(addresses))[:random.IntN(3)] {
			s.Spec.Addresses = append(s.Spec.Addresses, addresses[n])
		}
		list = append(list, s)
	}
	return list
}

// drawHost draws a host of its own, some of them with short names.
func drawHost(random *rand.Rand, file, n int) string {
	if random.IntN(4) == 0 {
		return fmt.Sprintf("s-%d-%d.shop.svc.cluster.local", file, n)
	}
	return fmt.Sprintf("s-%d-%d.localhost", file, n)
}

func distinct(ports []port) (list []port) {
	seen := map[uint32]bool{}
	for _, p := range ports {
		if !seen[p.Number] {
			seen[p.Number] = true
			list = append(list, p)
		}
	}
	return list
}
