package envoy

import (
	"fmt"
	"testing"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// BenchmarkOneHostOfManyNamespaces is the first step where each namespace has a service of
// its own of one host, which is every other's rival.
func BenchmarkOneHostOfManyNamespaces(b *testing.B) {
	for _, namespaces := range []int{250, 500, 1000, 2000} {
		b.Run(fmt.Sprint(namespaces), func(b *testing.B) {
			builder := catalog.NewBuilder(nil)
			var events []model.Event
			for n := range namespaces {
				s := model.Service{Ports: model.ListOf(ports[3]), ExportTo: model.ListOf(".")}
				events = append(events, record(fmt.Sprintf("n%d", n), "p", s))
			}
			change := builder.Apply(1, events)
			for b.Loop() {
				Step(builder.Snapshot(), change, true, "istio-system")
			}
		})
	}
}
