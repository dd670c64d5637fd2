package servicecenter_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/isthmus-mesh/isthmus/source/servicecenter"
)

// instances are as many as given, as services mostly have them.
func instances(n int) []servicecenter.Instance {
	all := make([]servicecenter.Instance, n)
	for i := range all {
		all[i] = servicecenter.Instance{
			ID: fmt.Sprintf("%032x", i), HostName: fmt.Sprintf("host-%d", i), Status: "UP", Version: "1.0.0",
			Endpoints:  []string{fmt.Sprintf("rest://10.%d.%d.%d:8080?sslEnabled=false", i>>16, i>>8&255, i&255)},
			Properties: map[string]string{"weight": "10", "zone": "a"},
		}
	}
	return all
}

func BenchmarkConvert(b *testing.B) {
	const n = 1000
	services := []servicecenter.Registered{{App: "shop", Service: "cart", Instances: instances(n)}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := servicecenter.Convert(servicecenter.Config{}, services, noon); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/instance")
}

func BenchmarkDecode(b *testing.B) {
	const n = 1000
	body, err := json.Marshal(map[string]any{"services": map[string]any{"updated": []any{map[string]any{"index": 0, "rev": "r", "instances": instances(n)}}}})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := servicecenter.DecodeFound(body, 1); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/instance")
}

func BenchmarkAssign(b *testing.B) {
	const n = 10_000
	services := make([]servicecenter.Registered, n)
	for i := range services {
		services[i] = servicecenter.Registered{App: "shop", Service: fmt.Sprintf("Service_%d", i)}
	}
	assign, err := servicecenter.Assigner(servicecenter.Config{}, services)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		assign()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/service")
}
