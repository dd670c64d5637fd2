package envoy_test

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// TestListenersOfABootstrapGetRoutes has listeners of a bootstrap wait without end for
// route configurations over ADS: of a port, of a host, and of names that nobody knows;
// and a cluster for endpoints of a service that there is not. Envoy starts, and nothing
// waits until a time is over. Once there are no services behind one any more, it leads to
// none of them.
func TestListenersOfABootstrapGetRoutes(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		m := newMesh(t)
		m.Envoy = "outbound: registry"
		web, number := startBackend(t, "web", "web"), port{Number: freePort(t), Name: "http", Protocol: "HTTP"}
		publish := func() {
			spec := serviceSpec{Hosts: []string{"web.example.com"}, Resolution: "STATIC", Ports: []port{number}, Endpoints: []endpoint{web.endpoint("http")}}
			m.Folder.write(t, "web", service{Spec: spec})
		}
		publish()
		m.Serve("")
		ofPort := proxy.Waiting{Port: freePort(t), Routes: strconv.Itoa(int(number.Number))}
		waits := []proxy.Waiting{ofPort}
		for _, name := range []string{"web.example.com:9", "inbound|80||", "mine", "http.edge"} {
			waits = append(waits, proxy.Waiting{Port: freePort(t), Routes: name})
		}
		p := m.connectWith(proxy.Config{Delta: delta, Listeners: true, Waits: waits})
		m.AwaitActive("the service")
		for _, w := range waits[1:] {
			await(t, w.Routes+" to be there", func() error { return isStatus(t, w.Port, "web.example.com", http.StatusBadGateway) })
		}
		for range 2 {
			await(t, "the service to answer", func() error { return answers(t.Context(), ofPort.Port, "web.example.com", "web") })
			m.Folder.remove(t, "web")
			await(t, "its routes to go", func() error { return isStatus(t, ofPort.Port, "web.example.com", http.StatusBadGateway) })
			publish()
		}
		empty := serviceSpec{Hosts: []string{"empty.example.com"}, Resolution: "STATIC", Ports: []port{number, {Number: freePort(t), Name: "raw", Protocol: "TCP"}}}
		m.Folder.write(t, "empty", service{Name: "empty", Spec: empty})
		m.AwaitActive("the service again, and one without endpoints")
		if err := p.TimedOut(t.Context()); err != nil {
			t.Error(err)
		}
		if err := p.Rejected(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestRejectedListenerTakesNoOtherDown has an Envoy at the edge find one of its ports
// taken, and reject the listener. The others serve, also what changes from then on.
func TestRejectedListenerTakesNoOtherDown(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		m := newMesh(t)
		taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "0.0.0.0:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = taken.Close() })
		first, second := freePort(t), freePort(t)
		m.Envoy = fmt.Sprintf(`edge: {ports: [{number: %[1]d, %[4]s}, {number: %[2]d, %[4]s}, {number: %[3]d, %[4]s}]}`, first, taken.Addr().(*net.TCPAddr).Port, second, `hosts: ["*"], localAddresses: allow`)
		web, api := startBackend(t, "web", "web"), startBackend(t, "api", "api")
		publish := func(host string, b *backend) {
			spec := serviceSpec{Hosts: []string{host}, Resolution: "STATIC", Ports: []port{{Number: 9000, Name: "http", Protocol: "HTTP"}}, Endpoints: []endpoint{b.endpoint("http")}}
			m.Folder.write(t, "one", service{Spec: spec})
		}
		publish("web.example.com", web)
		i := m.Serve("")
		p := m.connectWith(proxy.Config{Delta: delta})
		everywhere := func(host, want string) {
			for _, number := range []uint32{first, second} {
				await(t, host+" to answer", func() error { return answers(t.Context(), number, host, want) })
			}
		}
		everywhere("web.example.com", "web")
		await(t, "the listener to be rejected alone", func() error {
			listeners, err := p.Listeners(t.Context())
			if n := i.Metric("isthmus_refusals_total", ""); err == nil && (n == 0 || len(listeners) < 2) {
				err = fmt.Errorf("%.0f responses were NACKed, listeners are %v", n, listeners)
			}
			return err
		})
		publish("api.example.com", api)
		everywhere("api.example.com", "api")
		if err := p.TimedOut(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
