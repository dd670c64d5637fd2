package envoy_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/netns"
	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

// threeServices are what a Service Center has by default: no virtual addresses, and one port of
// each protocol for all services.
var threeServices = map[string]string{"cart": "10.200.0.1", "orders": "10.200.0.2", "stock": "10.200.0.3"}

// TestWhoIsDialledAnswers has clients choose an instance of three services themselves, and dial
// machines that no registry knows, as every client of ServiceComb and Dubbo does. Who answers is
// who was dialled, or nobody.
func TestWhoIsDialledAnswers(t *testing.T) {
	t.Parallel()
	if separately(t) {
		return
	}
	if err := netns.Answer(answering, 15001); err != nil {
		t.Fatal(err)
	}
	trusted := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(trusted, startEveryone(t), 0o600); err != nil {
		t.Fatal(err)
	}
	center := servicecenter.Start(t, servicecenter.Config{Prompt: true, KeepAlive: true})
	for name, address := range threeServices {
		id := center.Register(servicecenter.Service{App: "shop", Name: name})
		center.RegisterInstance(id, servicecenter.Instance{HostName: name, Endpoints: []string{"rest://" + address + ":8080", "highway://" + address + ":7070"}})
	}
	itself := func(to string) string { return to }
	for name, settings := range map[string]struct {
		envoy  string
		nobody func(to string) string // who answers at addresses of nobody
	}{
		"default":  {"", itself},
		"registry": {"outbound: registry", func(string) string { return closed }},
		"secured":  {fmt.Sprintf(`hosts: [{host: "*.example", tls: {mode: SIMPLE, caFile: %q}}]`, trusted), itself},
		"old rule": {"unaddressed: all", func(to string) string { // of Istio, and of the release before
			if strings.HasSuffix(to, ":3306") {
				return "10.200.0.4:3306"
			}
			return "10.200.0.1:7070"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMesh(t)
			m.Envoy = settings.envoy
			m.Sources = fmt.Sprintf("- name: center\n  servicecenter: {addresses: [%q], host: \"{{.Service}}.example\", namespace: shop, poll: 100ms}\n", center.URL())
			m.Folder.write(t, "db", service{Name: "db", Spec: serviceSpec{
				Hosts: []string{"db.example"}, Resolution: "STATIC", Ports: []port{{Number: 3306, Name: "mysql", Protocol: "TCP"}}, Endpoints: []endpoint{{Address: "10.200.0.4"}},
			}})
			m.Serve("")
			p := m.connectWith(proxy.Config{Workload: "client", Delta: true, Redirected: true})
			id := m.idOf("client")
			for host, address := range threeServices {
				if name != "secured" { // where who answers speaks nothing but lines
					m.mustBeAnswered(call{to: netip.MustParseAddrPort("10.201.0.1:8080"), says: inHTTP, host: host + ".example"}, address+":8080")
				}
				at := call{to: netip.MustParseAddrPort(address + ":7070"), says: inLine}
				if settings.envoy == "unaddressed: all" {
					m.mustBeAnswered(at, "10.200.0.1:7070")
					continue
				}
				m.mustBeAnswered(at, address+":7070")
				if e := m.explained(id, host+".example", 7070); e.State != "reached" || e.Address != address {
					t.Errorf("%s.example is explained as %s at %q: %s", host, e.State, e.Address, e.Reason)
				}
			}
			for _, to := range []string{"10.202.0.1:7070", "10.202.0.1:3306"} {
				m.mustBeAnswered(call{to: netip.MustParseAddrPort(to), says: inLine}, settings.nobody(to))
			}
			handshakes, err := p.Stats(t.Context(), `^cluster\.outbound\|7070\|\*\|.*ssl\.handshake$`)
			if secured := len(handshakes) == 3; err != nil || secured != (name == "secured") {
				t.Errorf("handshakes at instances: %v (%v)", handshakes, err)
			}
			m.MustBeSettled()
			p.Stop() // the next one has its port
		})
	}
}

// mustBeAnswered waits until a call is answered as wanted, and calls twenty times more.
func (m *mesh) mustBeAnswered(c call, want string) {
	m.Helper()
	await(m, fmt.Sprintf("%s, answered by %s with outputs.xds.envoy: {%s}", c, want, m.Envoy), func() error {
		if got := c.made(m.Context(), netns.Redirected); got != want {
			return errors.New(got)
		}
		return nil
	})
	for range 20 {
		if got := c.made(m.Context(), netns.Redirected); got != want {
			m.Errorf("%s with outputs.xds.envoy: {%s} is answered by %s, not by %s", c, m.Envoy, got, want)
			return
		}
	}
}
