package scale

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// port is the one port of every service.
const port = 8080

// registry is a folder of ServiceEntry files.
type registry struct {
	dir       string // what the source reads
	desk      string // where files are written before they are moved into dir
	endpoints int
	weights   map[int]int // of a service's first endpoint, by service; absent is 1
}

func newRegistry(b *testing.B, services, endpoints int) *registry {
	b.Helper()
	root := b.TempDir()
	r := &registry{filepath.Join(root, "registry"), filepath.Join(root, "desk"), endpoints, map[int]int{}}
	for _, dir := range []string{r.dir, r.desk} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			b.Fatal(err)
		}
	}
	for i := range services {
		r.write(b, i)
	}
	return r
}

// change gives the first endpoint of a service another weight, and returns
// when the file was put in place.
func (r *registry) change(b *testing.B, service int) time.Time {
	b.Helper()
	r.weights[service]++
	return r.write(b, service)
}

// write writes a service's file aside and moves it into place, so that the
// source never sees half of it.
func (r *registry) write(b *testing.B, service int) time.Time {
	b.Helper()
	name := fmt.Sprintf("service-%04d.yaml", service)
	draft := filepath.Join(r.desk, name)
	if err := os.WriteFile(draft, r.manifest(service), 0o600); err != nil {
		b.Fatal(err)
	}
	now := time.Now()
	if err := os.Rename(draft, filepath.Join(r.dir, name)); err != nil {
		b.Fatal(err)
	}
	return now
}

func (r *registry) manifest(service int) []byte {
	var m bytes.Buffer
	fmt.Fprintf(&m, `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: service-%04d, namespace: shop}
spec:
  hosts: [%s]
  ports: [{number: %d, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints:
`, service, host(service), port)
	for i := range r.endpoints {
		weight := 1
		if i == 0 {
			weight += r.weights[service]
		}
		n := service*r.endpoints + i
		fmt.Fprintf(&m, "  - {address: 10.%d.%d.%d, locality: eu-west-1/eu-west-1%c, weight: %d}\n",
			n>>16&255, n>>8&255, n&255, 'a'+rune(i%3), weight)
	}
	return m.Bytes()
}

func host(service int) string { return fmt.Sprintf("service-%04d.shop.example.com", service) }

// clusterName is the name of a service's cluster, load assignment and route.
func clusterName(service int) string {
	return "outbound|" + strconv.Itoa(port) + "||" + host(service)
}

func listenerName(service int) string { return host(service) + ":" + strconv.Itoa(port) }
