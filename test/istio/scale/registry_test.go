package scale_test

import (
	"fmt"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

// The shape of the registry: every service has so many versions, of which one
// has instances; they are in so many apps, each in some environments.
const (
	versions     = 3
	apps         = 40
	environments = 3
	// largest is how many instances a service has at most.
	largest = 5000
)

// registry is a Service Center, and what is registered there.
type registry struct {
	*servicecenter.Server
	live []string // ids of the versions that have instances, by service
	size []int    // instances by service
	used int      // addresses

	rest, grpc string // ports of the instances
}

// emptyRegistry is one in which nothing is registered.
func emptyRegistry(b testing.TB) *registry {
	b.Helper()
	s := servicecenter.Start(b, servicecenter.Config{Prompt: true, KeepAlive: true})
	return &registry{Server: s, rest: "8080", grpc: "9090"}
}

// newRegistry fills a registry. How many instances a service has falls with its
// number as Zipf says: few have thousands, most have one or two.
func newRegistry(b testing.TB, services, instances int) *registry {
	b.Helper()
	r := emptyRegistry(b)
	for n, size := range sizes(services, instances) {
		r.add(n, size)
	}
	return r
}

// sizes divides instances among services.
func sizes(services, instances int) []int {
	low, high := 0, instances // of the first service, were there no limit
	for low+1 < high {
		if middle := (low + high) / 2; total(services, middle) > instances {
			high = middle
		} else {
			low = middle
		}
	}
	list := make([]int, services)
	rest := instances - total(services, low)
	for n := range list {
		list[n] = zipf(n, low)
		if rest > 0 && list[n] < largest {
			list[n]++
			rest--
		}
	}
	return list
}

func zipf(n, first int) int { return min(max(first/(n+1), 1), largest) }

func total(services, first int) (sum int) {
	for n := range services {
		sum += zipf(n, first)
	}
	return sum
}

// add registers a service with its versions and instances.
func (r *registry) add(n, size int) {
	s := servicecenter.Service{App: fmt.Sprintf("app-%d", n%apps), Name: name(n)}
	s.Environment = []string{"", "production", "testing"}[n/apps%environments]
	for v := range versions {
		s.Version = fmt.Sprintf("1.%d.0", v)
		s.Properties = map[string]string{"team": s.App}
		id := r.Register(s)
		if v == 0 {
			r.live = append(r.live, id)
		}
	}
	r.size = append(r.size, size)
	for range size {
		r.grow(n)
	}
}

// grow registers one more instance of a service.
func (r *registry) grow(n int) (instance, address string) {
	r.used++
	address = fmt.Sprintf("10.%d.%d.%d", r.used>>16, r.used>>8&255, r.used&255)
	instance = r.RegisterInstance(r.live[n], servicecenter.Instance{
		HostName:   "host-" + address,
		Endpoints:  []string{"rest://" + address + ":" + r.rest + "?sslEnabled=false", "grpc://" + address + ":" + r.grpc},
		Properties: map[string]string{"zone": "a", "weight": "10"},
		DataCenter: &servicecenter.DataCenter{Name: "dc", Region: "eu", Zone: "eu-1"},
	})
	return instance, address
}

func name(n int) string { return fmt.Sprintf("service-%05d", n) }

func host(n int) string { return name(n) + ".example.com" }
