package servicecenter_test

import (
	"fmt"
	"testing"

	"github.com/isthmus-mesh/isthmus/source/servicecenter"
	"github.com/isthmus-mesh/isthmus/source/servicecenter/registry"
)

// instances are as many as given, as services mostly have them.
func instances(n int) []registry.Instance {
	all := make([]registry.Instance, n)
	for i := range all {
		all[i] = registry.Instance{
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
