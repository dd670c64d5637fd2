package envoy

import (
	"fmt"
	"net/netip"
	"strconv"
	"testing"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// BenchmarkOneHostOfManyNamespaces is the first step where each namespace has a service of
// its own of one host, which conflicts with every other, and one in which all of their ports
// change. What they cost is to grow as the namespaces do.
func BenchmarkOneHostOfManyNamespaces(b *testing.B) {
	for _, addresses := range []string{"none", "one", "each its own"} {
		for _, namespaces := range []int{250, 500, 1000, 2000} {
			builder := catalog.NewBuilder(nil)
			first := builder.Apply(1, oneHost(namespaces, addresses, ports[3]))
			at := builder.Snapshot()
			second := builder.Apply(2, oneHost(namespaces, addresses, ports[0]))
			b.Run(fmt.Sprint("addresses: ", addresses, "/", namespaces, "/come"), func(b *testing.B) {
				for b.Loop() {
					Step(at, first, true, "istio-system")
				}
			})
			b.Run(fmt.Sprint("addresses: ", addresses, "/", namespaces, "/change their ports"), func(b *testing.B) {
				for b.Loop() {
					Step(builder.Snapshot(), second, true, "istio-system")
				}
			})
		}
	}
}

// oneHost is a service of one host in each of so many namespaces.
func oneHost(namespaces int, addresses string, port model.Port) (events []model.Event) {
	for n := range namespaces {
		s := model.Service{Ports: model.ListOf(port), ExportTo: model.ListOf(".")}
		switch addresses {
		case "one":
			s.Addresses = model.ListOf("10.0.0.1")
		case "each its own":
			s.Addresses = model.ListOf(netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)}).String())
		}
		events = append(events, record("n"+strconv.Itoa(n), "p", s))
	}
	return events
}
