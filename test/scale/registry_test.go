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
	dir     string // what the source reads
	desk    string // where files are written before they are moved into dir
	first   []int  // number of the first endpoint of each service, and of the one after the last
	form    form
	weights map[int]int // of a service's first endpoint, by service; absent is 1
}

// form is how a file writes an endpoint down.
type form string

const (
	brief form = "  - {address: %[1]s, locality: eu-west-1/eu-west-1%[2]c, weight: %[3]d}\n"
	// full is what Kubernetes' tools write, and what they write it of.
	full form = `  - address: %[1]s
    labels:
      app: service-%04[4]d
      version: v1
    locality: eu-west-1/eu-west-1%[2]c
    weight: %[3]d
`
)

// newRegistry writes a registry with services of the given numbers of endpoints.
func newRegistry(tb testing.TB, sizes []int, f form) *registry {
	tb.Helper()
	root := tb.TempDir()
	r := &registry{filepath.Join(root, "registry"), filepath.Join(root, "desk"), []int{0}, f, map[int]int{}}
	for _, dir := range []string{r.dir, r.desk} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			tb.Fatal(err)
		}
	}
	for i, size := range sizes {
		r.first = append(r.first, r.first[i]+size)
		for from := r.first[i]; from < r.first[i]+size; from += most {
			r.write(tb, i, from)
		}
	}
	return r
}

func (r *registry) services() int { return len(r.first) - 1 }

// change gives the first endpoint of a service another weight, and returns
// when the file was put in place.
func (r *registry) change(tb testing.TB, service int) time.Time {
	tb.Helper()
	r.weights[service]++
	return r.write(tb, service, r.first[service])
}

// most is how many endpoints a ServiceEntry has: Istio allows 4,096, and
// whatever is larger consists of several.
const most = 4000

// write writes the file with the endpoints of a service from one on aside and
// moves it into place, so that the source never sees half of it.
func (r *registry) write(tb testing.TB, service, from int) time.Time {
	tb.Helper()
	name := fmt.Sprintf("service-%04d-%d.yaml", service, (from-r.first[service])/most)
	draft := filepath.Join(r.desk, name)
	if err := os.WriteFile(draft, r.manifest(service, from), 0o600); err != nil {
		tb.Fatal(err)
	}
	now := time.Now()
	if err := os.Rename(draft, filepath.Join(r.dir, name)); err != nil {
		tb.Fatal(err)
	}
	return now
}

func (r *registry) manifest(service, from int) []byte {
	var m bytes.Buffer
	fmt.Fprintf(&m, `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: service-%04d-%d, namespace: shop}
spec:
  hosts: [%s]
  ports: [{number: %d, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints:
`, service, (from-r.first[service])/most, host(service), port)
	for n := from; n < min(from+most, r.first[service+1]); n++ {
		weight := 1
		if n == r.first[service] {
			weight += r.weights[service]
		}
		address := fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255)
		fmt.Fprintf(&m, string(r.form), address, 'a'+rune(n%3), weight, service)
	}
	return m.Bytes()
}

func host(service int) string { return fmt.Sprintf("service-%04d.shop.example.com", service) }

// clusterName is the name of a service's cluster, load assignment and route.
func clusterName(service int) string {
	return "outbound|" + strconv.Itoa(port) + "||" + host(service)
}

func listenerName(service int) string { return host(service) + ":" + strconv.Itoa(port) }
