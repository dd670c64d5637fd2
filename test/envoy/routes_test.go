package envoy_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// TestListenersOfABootstrapGetRoutes has listeners of a bootstrap wait without end for
// route configurations over ADS: of a port, of a host, and of names that nobody knows.
// Envoy starts at once. Once there are no services behind one any more, it leads to
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
		m.AwaitActive("the service again")
		if err := p.Rejected(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
