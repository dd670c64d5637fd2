package istio_test

import (
	"encoding/json"
	"fmt"
	"testing"

	networking "istio.io/api/networking/v1alpha3"
	"sigs.k8s.io/yaml"

	"github.com/isthmus-mesh/isthmus/convert/istio"
)

// BenchmarkRead is what it costs to read a large service in each form, an
// endpoint at a time.
func BenchmarkRead(b *testing.B) {
	const endpoints = 4000
	spec := &networking.ServiceEntry{
		Hosts: []string{"large.example"}, Resolution: networking.ServiceEntry_STATIC,
		Ports: []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
	}
	for i := range endpoints {
		spec.Endpoints = append(spec.Endpoints, &networking.WorkloadEntry{
			Address: fmt.Sprintf("10.0.%d.%d", i/256, i%256), Ports: map[string]uint32{"http": 8080},
			Labels: map[string]string{"app": "large", "zone": fmt.Sprintf("z%d", i%3)}, Locality: "eu/eu-1/a", Weight: 3,
		})
	}
	object := istio.Object{Namespace: "shop", Name: "large", Spec: spec}
	text, err := json.Marshal(object)
	if err != nil {
		b.Fatal(err)
	}
	document, err := yaml.JSONToYAML(text)
	if err != nil {
		b.Fatal(err)
	}
	for name, read := range map[string]func() istio.Reading{
		"yaml": func() (last istio.Reading) {
			for r := range istio.Read(document) {
				last = r
			}
			return last
		},
		"json":    func() istio.Reading { return istio.FromJSON(text, istio.DefaultDomain) },
		"message": func() istio.Reading { return istio.FromMessage(object) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if r := read(); len(r.Owned) != endpoints {
					b.Fatal(r.Problems)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/endpoints, "µs/endpoint")
		})
	}
}
