package envoy_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// protocols are all that a port may name, and none.
var protocols = []string{
	"HTTP", "HTTPS", "HTTP2", "GRPC", "GRPC-WEB", "HTTP_PROXY", "TLS", "TCP", "UDP", "MONGO", "REDIS", "MYSQL", "http", "grpc", "",
}

var resolutions = []string{"STATIC", "DNS", "DNS_ROUND_ROBIN", "NONE"}

// variants are what endpoints of each resolution may look like, by name.
var variants = map[string]map[string][]endpoint{
	"STATIC": {
		"empty":    nil,
		"ipv4":     {{Address: "192.0.2.1"}},
		"ipv6":     {{Address: "2001:db8::1"}, {Address: "2001:0DB8:0::2"}},
		"ports":    {{Address: "192.0.2.1", Ports: map[string]uint32{"main": 8080}}, {Address: "192.0.2.2"}},
		"weights":  {{Address: "192.0.2.1", Weight: 1}, {Address: "192.0.2.2", Weight: 4_000_000}, {Address: "192.0.2.3"}},
		"places":   {{Address: "192.0.2.1", Locality: "r1/z1/s1"}, {Address: "192.0.2.2", Locality: "r1"}, {Address: "192.0.2.3"}, {Address: "192.0.2.4", Locality: "r1/z1/s1", Weight: 7}},
		"networks": {{Address: "192.0.2.1", Network: "a"}, {Network: "b"}, {Address: "192.0.2.1", Ports: map[string]uint32{"main": 9}, Network: "c"}},
		"socket":   {{Address: "unix:///tmp/some.socket"}},
		"abstract": {{Address: "unix://@abstract", Weight: 3}},
	},
	"DNS": {
		"names":   {{Address: "a.localhost", Weight: 2}, {Address: "b.localhost", Ports: map[string]uint32{"main": 8080}, Locality: "r/z"}},
		"numbers": {{Address: "127.0.0.1"}, {Address: "127.0.0.2"}},
		"host":    nil,
	},
	"DNS_ROUND_ROBIN": {
		"name":   {{Address: "c.localhost", Ports: map[string]uint32{"main": 9090}}},
		"number": {{Address: "127.0.0.1", Locality: "r"}},
		"host":   nil,
	},
	"NONE": {"none": nil},
}

// shapes are services of every form. Names that have to be resolved end in
// localhost, which needs no nameserver.
func shapes() map[string][]object {
	files := map[string][]object{}
	add := func(file string, s service, more ...object) {
		files[file] = append(files[file], append(more, s)...)
	}
	for _, resolution := range resolutions {
		for name, endpoints := range variants[resolution] {
			for n, protocol := range protocols {
				host := fmt.Sprintf("%s-%d.%s.localhost", name, n, slug(resolution))
				add("each", service{Spec: serviceSpec{
					Hosts: []string{host}, Resolution: resolution, Endpoints: endpoints,
					Ports: []port{{Number: 80, Name: "main", Protocol: protocol}},
				}})
			}
		}
		for _, location := range []string{"", "MESH_EXTERNAL", "MESH_INTERNAL"} {
			host := fmt.Sprintf("at-%s.%s.localhost", slug(location), slug(resolution))
			add("locations", service{Spec: serviceSpec{
				Hosts: []string{host}, Resolution: resolution, Location: location,
				Ports: []port{{Number: 80, Name: "main", Protocol: "HTTP", TargetPort: 8080}, {Number: 81, Name: "same", Protocol: "TCP", TargetPort: 81}},
			}})
		}
	}
	add("wildcards", service{Name: "any-static", Spec: serviceSpec{Hosts: []string{"*.static.example.com"}, Resolution: "STATIC", Endpoints: variants["STATIC"]["ipv4"], Ports: []port{{Number: 443, Name: "tls", Protocol: "TLS"}}}})
	add("wildcards", service{Name: "any-none", Spec: serviceSpec{Hosts: []string{"*.none.example.com"}, Resolution: "NONE", Ports: []port{{Number: 443, Name: "tls", Protocol: "HTTPS"}}}})
	add("wildcards", service{Name: "any-dns", Spec: serviceSpec{Hosts: []string{"*.dns.example.com"}, Resolution: "DNS", Endpoints: variants["DNS"]["names"], Ports: []port{{Number: 443, Name: "main", Protocol: "HTTPS"}}}})
	add("hosts", service{Name: "several", Spec: serviceSpec{
		Hosts: []string{"one.example.com", "two.example.com", "*.three.example.com"}, Addresses: []string{"192.0.2.9", "198.51.100.0/24"},
		Resolution: "STATIC", Endpoints: variants["STATIC"]["places"], Ports: []port{{Number: 80, Name: "http", Protocol: "HTTP"}, {Number: 443, Name: "tls", Protocol: "TLS"}},
	}})
	add("ports", service{Spec: serviceSpec{Hosts: []string{"ports.example.com"}, Resolution: "STATIC", Ports: manyPorts(200), Endpoints: []endpoint{
		{Address: "192.0.2.1", Ports: map[string]uint32{"p0": 8080, "p7": 8081}}, {Address: "192.0.2.2", Ports: map[string]uint32{"p1": 9}}, {Address: "192.0.2.3"},
	}}})
	add("large", service{Spec: serviceSpec{Hosts: []string{"large.example.com"}, Resolution: "STATIC", Endpoints: manyEndpoints(4000), Ports: []port{{Number: 80, Name: "http", Protocol: "HTTP"}, {Number: 90, Name: "grpc", Protocol: "GRPC"}}}})
	for _, exportTo := range [][]string{nil, {"*"}, {"."}, {shop}, {"other", shop}, {"other"}, {"~"}} {
		for _, namespace := range []string{shop, "elsewhere"} {
			s := static(fmt.Sprintf("%s-to-%s.example.com", namespace, slug(strings.NewReplacer("*", "all", ".", "own", "~", "nobody").Replace(strings.Join(exportTo, "-")))), endpoint{Address: "192.0.2.1"})
			s.Namespace, s.Spec.ExportTo = namespace, exportTo
			add("exports", s)
		}
	}
	twice := static("twice.example.com", endpoint{Address: "192.0.2.2"})
	twice.Namespace = "elsewhere"
	add("namespaces", twice)
	add("namespaces", static("twice.example.com", endpoint{Address: "192.0.2.1"}))
	addSelected(add)
	return files
}

// addSelected adds services whose endpoints are workloads, of which some are
// selected twice, some not at all.
func addSelected(add func(string, service, ...object)) {
	for n := range 3 {
		var workloads []object
		for k := range 4 {
			workloads = append(workloads, workload{Name: fmt.Sprintf("w-%d-%d", n, k), Spec: endpoint{
				Address: fmt.Sprintf("198.51.100.%d", 10*n+k), Labels: map[string]string{"app": fmt.Sprint("a", n), "half": fmt.Sprint(k % 2)},
				Ports: map[string]uint32{"http": uint32(8000 + k)}, Weight: uint32(k), Locality: fmt.Sprintf("r%d/z", k%2),
			}})
		}
		s := static(fmt.Sprintf("selected-%d.example.com", n))
		s.Spec.Selector = &selector{Labels: map[string]string{"app": fmt.Sprint("a", n)}}
		add("workloads", s, workloads...)
		half := static(fmt.Sprintf("half-%d.example.com", n))
		half.Spec.Selector = &selector{Labels: map[string]string{"app": fmt.Sprint("a", n), "half": "0"}}
		add("workloads", half)
	}
	none := static("selects-nobody.example.com")
	none.Spec.Selector = &selector{Labels: map[string]string{"app": "nobody"}}
	add("workloads", none)
}

func slug(word string) string {
	return strings.ToLower(strings.ReplaceAll(cmp.Or(word, "default"), "_", "-"))
}

func manyPorts(count uint32) (ports []port) {
	for n := range count {
		ports = append(ports, port{Number: 1000 + n, Name: fmt.Sprint("p", n), Protocol: []string{"HTTP", "TCP", "GRPC"}[n%3], TargetPort: n % 2 * (2000 + n)})
	}
	return ports
}

func manyEndpoints(count int) (endpoints []endpoint) {
	for n := range count {
		endpoints = append(endpoints, endpoint{
			Address: fmt.Sprintf("10.0.%d.%d", n/250, n%250+1), Weight: uint32(n % 5), Locality: fmt.Sprintf("r%d/z%d", n%3, n%7),
		})
	}
	return endpoints
}

// TestEveryShapeIsActive has both kinds of Envoy take services of every form,
// and compares what they hold with the manifests and with the admin API.
func TestEveryShapeIsActive(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		m := newMesh(t)
		for file, objects := range shapes() {
			m.Folder.write(t, file, objects...)
		}
		i := m.Serve("")
		if err := i.Rejected(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		p := m.Connect(delta)
		m.AwaitActive("every shape")
		took := time.Since(began)
		m.MustShowWhatEnvoysHold()
		if err := p.Deprecated(t.Context()); err != nil {
			t.Error(err)
		}
		want := m.Folder.expected()

		served, err := i.view(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Clusters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := served.differs(ofServices(got)); err != nil {
			t.Errorf("from the admin API differs %s: %v", p.Name, err)
		}
		resolved, err := p.Resolved(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		endpoints := 0
		for name, c := range got {
			if resolved[name] != len(c.Endpoints) {
				t.Errorf("%s, %s: Envoy has %d endpoints of %d", name, c.Type, resolved[name], len(c.Endpoints))
			}
			endpoints += len(c.Endpoints)
		}
		figures.add(t, "%d clusters with %d endpoints active %s after Envoy's start", len(got), endpoints, took.Round(time.Millisecond))
	})
}

// view is what the admin API says of services that Envoys of the namespace shop
// may see, as clusters. Of an ORIGINAL_DST cluster the API does not say the port.
func (i *isthmus) view(visible view) (view, error) {
	services, err := i.services()
	if err != nil {
		return nil, err
	}
	own := map[string]bool{}
	for _, s := range services {
		own[s.Host] = own[s.Host] || s.Namespace == shop
	}
	said := view{}
	for _, s := range services {
		if own[s.Host] && s.Namespace != shop {
			continue
		}
		for _, p := range s.Ports {
			name := clusterName(s.Host, p.Number)
			if known, ok := visible[name]; ok {
				said[name] = s.cluster(p, known.Override)
			}
		}
	}
	return said, nil
}

func (s listed) cluster(p port, override uint32) proxy.Cluster {
	c := spokenTo(p.Protocol)
	c.Override = override
	for _, e := range s.Instances {
		if !e.Counts || e.Health != "HEALTHY" || e.ServicePort != p.Number || e.Address == "" { // without one it is behind a gateway
			continue
		}
		c.Endpoints = append(c.Endpoints, proxy.Endpoint{
			Address: strings.TrimPrefix(e.Address, "unix://"), Port: e.Port, Weight: cmp.Or(e.Weight, 1), Locality: e.Locality,
		})
	}
	if c.Type = discovery(s.Resolution, len(c.Endpoints)); c.Type == "ORIGINAL_DST" {
		c.Endpoints = nil
	}
	slices.SortFunc(c.Endpoints, proxy.CompareEndpoints)
	return c
}
