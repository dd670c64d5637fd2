package istio_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// shape is a ServiceEntry of which one thing after the other is changed.
type shape struct {
	host, labels, addresses, exportTo, location, resolution, ports, names, endpoints string
}

// plain is what most changes depart from.
func plain() shape {
	return shape{
		host: "web.example", labels: "{team: one}", addresses: "[]", exportTo: `["*"]`, location: "MESH_INTERNAL", resolution: "STATIC",
		ports: "[{number: 80, name: http, protocol: HTTP}]", names: "[]", endpoints: "[{address: 10.0.0.1}, {address: 10.0.0.2}]",
	}
}

func named(endpoints string) shape {
	s := plain()
	s.resolution, s.endpoints = "DNS", endpoints
	return s
}

func (s shape) manifest(namespace string) string {
	return fmt.Sprintf(`apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: %s, labels: %s}
spec: {hosts: [%s], addresses: %s, exportTo: %s, location: %s, resolution: %s, ports: %s, subjectAltNames: %s, endpoints: %s}
`, namespace, s.labels, s.host, s.addresses, s.exportTo, s.location, s.resolution, s.ports, s.names, s.endpoints)
}

// departures are changes to a plain service, by the words of the table in docs/istio.md.
var departures = map[string]func(s *shape){
	"an endpoint comes":               func(s *shape) { s.endpoints = "[{address: 10.0.0.1}, {address: 10.0.0.2}, {address: 10.0.0.3}]" },
	"an endpoint goes":                func(s *shape) { s.endpoints = "[{address: 10.0.0.1}]" },
	"all endpoints go":                func(s *shape) { s.endpoints = "[]" },
	"an endpoint gets another weight": func(s *shape) { s.endpoints = "[{address: 10.0.0.1}, {address: 10.0.0.2, weight: 7}]" },
	"an endpoint gets another label": func(s *shape) {
		s.endpoints = "[{address: 10.0.0.1}, {address: 10.0.0.2, labels: {version: two}}]"
	},
	"an endpoint gets another locality": func(s *shape) {
		s.endpoints = "[{address: 10.0.0.1}, {address: 10.0.0.2, locality: west/one}]"
	},
	"an endpoint gets a service account that is new to its service": func(s *shape) {
		s.endpoints = "[{address: 10.0.0.1}, {address: 10.0.0.2, serviceAccount: web}]"
	},
	"an endpoint gets a port of its own": func(s *shape) {
		s.endpoints = "[{address: 10.0.0.1}, {address: 10.0.0.2, ports: {http: 8080}}]"
	},
	"a port comes or goes": func(s *shape) {
		s.ports = "[{number: 80, name: http, protocol: HTTP}, {number: 81, name: grpc, protocol: GRPC}]"
	},
	"a port gets another protocol":        func(s *shape) { s.ports = "[{number: 80, name: http, protocol: TCP}]" },
	"the addresses of the service change": func(s *shape) { s.addresses = "[10.7.0.1]" },
	"its location changes":                func(s *shape) { s.location = "MESH_EXTERNAL" },
	"its exportTo changes":                func(s *shape) { s.exportTo = `["."]` },
	"its subjectAltNames change":          func(s *shape) { s.names = "[spiffe://cluster.local/ns/shop/sa/web]" },
	"its labels change":                   func(s *shape) { s.labels = "{team: two}" },
	"its host changes":                    func(s *shape) { s.host = "shop.example" },
}

// TestWhatIstiodPushesIsAsDocumented makes each change of the table in docs/istio.md, and
// its reversal, to a service that an istiod takes from an Isthmus. By istiod's own
// counters each is pushed as the table says.
func TestWhatIstiodPushesIsAsDocumented(t *testing.T) {
	t.Parallel()
	rules := serveRules(t)
	f := startFeed(t, "table", fmt.Sprintf("- name: rules\n  required: true\n  mcp: {address: %q, collections: [%s]}\n", rules.address, destinationRules))
	rules.Set(t, f.namespace, "")
	f.Write(marker, "10.9.0.1")
	write := func(s shape) func() {
		return func() { f.WriteFile("web.yaml", s.manifest(f.namespace)) }
	}
	write(plain())()
	f.Follow()
	f.Settle()
	unchanged := triggers(f.mustPushNext("nothing", ofEndpoints, func() {})) // those of the marker
	documented := pushTable(t)
	pushes := func(change string, ways ...func()) {
		t.Helper()
		as, there := documented[change]
		if !there {
			t.Errorf("the table does not have: %s", change)
		}
		delete(documented, change)
		for _, way := range ways {
			pushed := f.mustPushNext(change, as, way)
			if triggers(pushed) <= unchanged {
				t.Errorf("%s: it led to no push: %v", change, pushed)
			}
			t.Logf("%s: %v", change, pushed)
		}
	}
	for _, change := range slices.Sorted(maps.Keys(departures)) {
		s := plain()
		departures[change](&s)
		pushes(change, write(s), write(plain()))
	}
	pushes("its resolution changes", write(named("[{address: localhost}]")), write(plain()), write(named("[{address: localhost}]")))
	pushes("any endpoint changes, with resolution DNS", write(named("[{address: localhost}, {address: 127.0.0.2}]")), write(named("[{address: localhost}]")))
	pushes("a service comes or goes", func() {
		f.Remove("web")
		f.Await(clusterOf("web"), nil)
	}, write(plain()))
	pushes("a DestinationRule comes, changes or goes", func() { rules.Set(t, f.namespace, "one") },
		func() { rules.Set(t, f.namespace, "two") }, func() { rules.Set(t, f.namespace, "") })
	for change := range documented {
		t.Errorf("this row of the table is not tested: %s", change)
	}
	f.MustHaveRejectedNothing()
}

// triggers are how often something led to a push.
func triggers(p cluster.Pushes) (n int) {
	for what, times := range p {
		if strings.HasPrefix(what, "for ") {
			n += times
		}
	}
	return n
}

// pushTable is what the table says of each change, in the words of [differ].
func pushTable(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "istio.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## What istiod pushes")
	kinds := map[string]string{"endpoints": ofEndpoints, "clusters, endpoints, listeners and routes": ofEverything}
	rows := map[string]string{}
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) == 4 {
			if kind := kinds[strings.TrimSpace(cells[2])]; kind != "" {
				rows[strings.TrimSpace(cells[1])] = kind
			}
		}
	}
	return rows
}
