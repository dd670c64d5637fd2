package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	services  = 100 // of the registry, each in a file of its own
	endpoints = 20  // of each
	port      = 8080
)

// registry is a folder of ServiceEntry files. Its methods may be called from
// any goroutine.
type registry struct {
	dir  string // what the source reads
	desk string // where files are written before they are moved into dir

	mu      sync.Mutex
	weights [services]uint32 // of each service's first endpoint
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	root := t.TempDir()
	r := &registry{dir: filepath.Join(root, "registry"), desk: filepath.Join(root, "desk")}
	for _, dir := range []string{r.dir, r.desk} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i := range services {
		if _, _, err := r.change(i); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// change gives the first endpoint of a service another weight. It returns
// which, and when the file was put in place.
func (r *registry) change(service int) (weight uint32, at time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.weights[service]++
	draft, file := filepath.Join(r.desk, "draft"), filepath.Join(r.dir, fmt.Sprintf("service-%03d.yaml", service))
	if err := os.WriteFile(draft, []byte(manifest(service, r.weights[service])), 0o600); err != nil {
		return 0, at, err
	}
	return r.weights[service], time.Now(), os.Rename(draft, file)
}

// hide takes the folder away, and returns what brings it back.
func (r *registry) hide(t *testing.T) (bringBack func()) {
	t.Helper()
	away := r.dir + ".away"
	rename := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	rename(r.dir, away)
	return func() { rename(away, r.dir) }
}

// says is the weight of each cluster's first endpoint.
func (r *registry) says() map[string]uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]uint32{}
	for i, weight := range r.weights {
		all[clusterName(i)] = weight
	}
	return all
}

func manifest(service int, weight uint32) string {
	var m strings.Builder
	fmt.Fprintf(&m, `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: service-%03d, namespace: shop}
spec:
  hosts: [%s]
  ports: [{number: %d, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints:
`, service, host(service), port)
	for n := range endpoints {
		fmt.Fprintf(&m, "  - {address: 10.0.%d.%d, weight: %d, labels: {app: service-%03d, version: v1}}\n", service, n+1, weight, service)
		weight = 1
	}
	return m.String()
}

func host(service int) string { return fmt.Sprintf("service-%03d.shop.example.com", service) }

// clusterName is the name of a service's cluster and load assignment.
func clusterName(service int) string { return fmt.Sprintf("outbound|%d||%s", port, host(service)) }

// clusterNames are those of all services.
func clusterNames() []string {
	names := make([]string, services)
	for i := range names {
		names[i] = clusterName(i)
	}
	return names
}
