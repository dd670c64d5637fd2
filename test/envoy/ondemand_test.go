package envoy_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// An Envoy with ADS asks for a cluster when a request names it, on a stream of
// clusters alone. The cluster takes its endpoints over ADS, and follows them.
func TestClustersAreFoundOnDemand(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		m := newMesh(t)
		first, second := startBackend(t, "web", "web-1"), startBackend(t, "web", "web-2")
		publish := func(b *backend) {
			spec := serviceSpec{Hosts: []string{"web.localhost"}, Resolution: "STATIC", Ports: []port{{Number: 80, Name: "http", Protocol: "HTTP"}}}
			spec.Endpoints = []endpoint{b.endpoint("http")}
			m.Folder.write(m, "web", service{Name: "web", Spec: spec})
		}
		publish(first)
		m.Serve("")
		p := m.connectWith(proxy.Config{Delta: delta, OnDemand: true})
		client := &http.Client{Transport: &http.Transport{}, Timeout: until.Patience}
		t.Cleanup(client.CloseIdleConnections)
		ask := func() error { return askOnce(m, client, p, clusterName("web.localhost", 80)) }
		if clusters, err := p.Clusters(m.Context()); err != nil || len(clusters) != 0 {
			t.Errorf("before any request it has %d clusters, %v", len(clusters), err)
		}
		await(m, "the first request to be answered", ask)
		publish(second)
		await(m, "a request to reach the other backend", func() error {
			before := second.requests.Load()
			if err := ask(); err != nil || second.requests.Load() > before {
				return err
			}
			return fmt.Errorf("it went to the first, %d to the second", before)
		})
	})
}

// askOnce sends one request through an Envoy.
func askOnce(m *mesh, client *http.Client, p *proxy.Proxy, cluster string) error {
	request, err := http.NewRequestWithContext(m.Context(), http.MethodGet, "http://"+p.Address+"/", http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("x-cluster", cluster)
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("it is answered with %s\n%s", answer.Status, p.Log())
	}
	return nil
}
