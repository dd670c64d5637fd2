package envoy_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
)

// TestOtherNetworksAreEnteredThroughTheirGateways has a sidecar in one network call a
// service of which an endpoint is in another. That one is reached through a gateway alone,
// an Envoy at the edge, which goes and comes; the near one directly.
func TestOtherNetworksAreEnteredThroughTheirGateways(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		const host = "mesh.example.com"
		m := newMesh(t)
		ca := authority.New(t, "ca")
		own := newIdentity(t, filepath.Join(m.Dir, "files"), proxyIdentity)
		own.issue(ca)
		own.replace(ca)
		number, entrance := freePort(t), freePort(t)
		m.Envoy = fmt.Sprintf(`
networks: [{name: here, gateways: [{address: 192.0.2.1}]}, {name: there, gateways: [{address: 127.0.0.1, port: %d}]}],
edge: {ports: [{number: %[1]d, protocol: AUTO_PASSTHROUGH, hosts: ["*"], localAddresses: allow}]},
hosts: [{host: %q, tls: {mode: ISTIO_MUTUAL, certificateFile: %q, keyFile: %q, caFile: %q}}]`,
			entrance, host, own.file("tls.crt"), own.file("tls.key"), own.file("ca.crt"))
		at := func(account, network string) endpoint {
			e := startSecured(t, ca, "spiffe://cluster.local/ns/"+shop+"/sa/"+account)
			e.Account, e.Network = account, network
			return e
		}
		near, far := at("near", "here"), at("far", "there")
		publish := func(name, host, location string) {
			m.Folder.write(t, name, service{Spec: serviceSpec{
				Hosts: []string{host}, Location: location, Resolution: "STATIC",
				Ports: []port{{Number: number, Name: "http", Protocol: "HTTP"}}, Endpoints: []endpoint{near, far},
			}})
		}
		publish("plain", "plain.example.com", "MESH_INTERNAL")
		publish("mesh", host, "MESH_EXTERNAL")
		m.Serve("")
		gateway := func() *proxy.Proxy {
			return m.connectWith(proxy.Config{Delta: delta, Workload: "gateway", Network: "there"})
		}
		first := gateway()
		client := m.connectWith(proxy.Config{Delta: delta, Listeners: true, Network: "here"})
		given := func(host string, want ...uint32) {
			t.Helper()
			await(t, "the endpoints of "+host, func() error {
				list, err := client.Endpoints(t.Context(), clusterName(host, number))
				var ports []uint32
				for _, e := range list {
					ports = append(ports, e.Port)
				}
				slices.Sort(ports)
				slices.Sort(want)
				if err == nil && !slices.Equal(ports, want) {
					err = fmt.Errorf("they are %v, want %v", ports, want)
				}
				return err
			})
		}
		given(host, near.Ports["http"]) // nor out of the mesh
		publish("mesh", host, "MESH_INTERNAL")
		given(host, near.Ports["http"], entrance)
		given("plain.example.com", near.Ports["http"]) // without TLS no gateway leads on
		// calls awaits that of so many calls all are answered, by these accounts.
		calls := func(what string, want ...string) {
			t.Helper()
			await(t, what, func() error {
				got := map[string]bool{}
				for range 40 {
					by, err := shown(t, number, host)
					if err != nil {
						return err
					}
					got[by] = true
				}
				for _, account := range want {
					if identity := "spiffe://cluster.local/ns/" + shop + "/sa/" + account; !got[identity] || len(got) != len(want) {
						return fmt.Errorf("answered by %v, want %v", got, want)
					}
				}
				return nil
			})
		}
		calls("both networks to answer", "near", "far")
		m.MustBeSettled()

		for name, leads := range map[string]bool{
			fmt.Sprintf("outbound_.%d_._.%s", number, host): true, fmt.Sprintf("outbound_.%d_._.plain.example.com", number): false,
			clusterName(host, number): false, clusterName("plain.example.com", number): false, host: false, "": false,
		} {
			if err := entered(t, entrance, name); (err == nil) != leads {
				t.Errorf("who says %q comes through the gateway: %t (%v)", name, !leads, err)
			}
		}

		first.Stop()
		m.Proxies = slices.DeleteFunc(m.Proxies, func(p *proxy.Proxy) bool { return p == first })
		calls("the own network to answer alone", "near")
		second := gateway()
		calls("the gateway to be back", "near", "far")
		m.MustBeSettled()
		for _, p := range []*proxy.Proxy{client, second} {
			if err := p.Deprecated(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// shown calls a host at a port of loopback, and says who answered.
func shown(t *testing.T, number uint32, host string) (string, error) {
	t.Helper()
	response, err := requested(t.Context(), number, host)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %.300s", response.Status, body)
	}
	return response.Header.Get(shownBy), nil
}

// entered shakes hands with whoever is behind a gateway under a name.
func entered(t *testing.T, gateway uint32, name string) error {
	t.Helper()
	dialer := tls.Dialer{Config: &tls.Config{ServerName: name, InsecureSkipVerify: true}}
	connection, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(gateway)))
	if err != nil {
		return err
	}
	return connection.Close()
}
