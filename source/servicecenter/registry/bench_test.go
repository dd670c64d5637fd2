package registry_test

import (
	"encoding/json"
	"fmt"
	"testing"

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

func BenchmarkDecode(b *testing.B) {
	const n = 1000
	body, err := json.Marshal(map[string]any{"services": map[string]any{"updated": []any{map[string]any{"index": 0, "rev": "r", "instances": instances(n)}}}})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := registry.DecodeFound(body, 1); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/instance")
}
