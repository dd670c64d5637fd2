package kubernetes_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/isthmus-mesh/isthmus/convert/kubernetes"
)

// large is a Service of so many endpoints, in slices of 100 as Kubernetes makes them.
type large struct {
	group *kubernetes.Group
	slice discoveryv1.EndpointSlice // the first
}

func newLarge(endpoints int) *large {
	l := &large{group: kubernetes.NewGroup(cluster, shop, &known{}, &kubernetes.Index{})}
	service := cluster.ReadService(&corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}})
	service.Name = shop
	l.group.SetService(&service)
	name, number := "http", int32(8080)
	for at := 0; at < endpoints; at += 100 {
		s := discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &number}}}
		s.Name, s.Labels = fmt.Sprintf("web-%d", at), map[string]string{discoveryv1.LabelServiceName: shop.Name}
		for n := at; n < min(at+100, endpoints); n++ {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&255, n&255)}})
		}
		l.group.SetSlice(kubernetes.ReadSlice(&s))
		if at == 0 {
			l.slice = s
		}
	}
	l.group.Take()
	return l
}

// change has one endpoint become ready, or not any more, and returns how many records that is.
func (l *large) change(ready bool) int {
	l.slice.Endpoints[7].Conditions.Ready = &ready
	l.group.SetSlice(kubernetes.ReadSlice(&l.slice))
	c := l.group.Take()
	return len(c.Upserts) + len(c.Deletes) + len(c.OwnedUpserts) + len(c.OwnedDeletes)
}

// One endpoint of a large Service is one record.
func TestOneEndpointOfALargeServiceIsOneRecord(t *testing.T) {
	t.Parallel()
	l := newLarge(20_000)
	for n := range 4 {
		if records := l.change(n%2 == 1); records != 1 {
			t.Errorf("%d records changed", records)
		}
	}
}

// A change costs its slice, whatever the size of the Service.
func BenchmarkOneEndpoint(b *testing.B) {
	for _, endpoints := range []int{100, 20_000} {
		b.Run(fmt.Sprint(endpoints), func(b *testing.B) {
			l, n := newLarge(endpoints), 0
			b.ReportAllocs()
			for b.Loop() {
				n++
				l.change(n%2 == 1)
			}
		})
	}
}
