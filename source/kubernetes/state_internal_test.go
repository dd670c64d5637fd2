package kubernetes

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	convert "github.com/isthmus-mesh/isthmus/convert/kubernetes"
)

// sliceOf is a slice of the Service shop/cart with one endpoint of a pod.
func sliceOf(name string, kind discoveryv1.AddressType, address string) object {
	port, ready := int32(80), true
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "cart"}},
		AddressType: kind, Ports: []discoveryv1.EndpointPort{{Port: &port}},
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "cart-1", UID: "1"},
		}},
	}
	return object{convert.Name{Namespace: "shop", Name: name}, convert.ReadSlice(s)}
}

func serviceOf(c convert.Cluster, name string) object {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.1.0.1", Ports: []corev1.ServicePort{{Port: 80}}},
	}
	return object{convert.Name{Namespace: "shop", Name: name}, c.ReadService(s)}
}

// The first listing has everything, an endpoint with an unknown pod included. Nothing of
// it is passed on again. A later slice that is left out has its place listed.
func TestStepsRepeatNothing(t *testing.T) {
	t.Parallel()
	c := &Config{Domain: "cluster.local", Pods: true, ClusterLocal: []string{"kube-system/*"}}
	s := newState(newObjects(c), nil)
	now := time.Now()
	s.change(services, serviceOf(c.cluster(), "cart"), now)
	s.change(services, serviceOf(c.cluster(), "gone"), now)
	s.change(endpointSlices, sliceOf("cart-a", discoveryv1.AddressTypeIPv4, "10.0.0.1"), now)
	s.change(services, object{Name: convert.Name{Namespace: "shop", Name: "gone"}}, now)
	if steps := s.take(); len(steps) > 0 {
		t.Fatalf("%d steps come before the first listing", len(steps))
	}
	first := s.first(nil)
	if l := first[0].listing; len(l.Objects) != 1 || len(l.Objects[0].Owned) != 1 {
		t.Errorf("listed are %+v", l.Objects)
	}
	if names := s.objects.groups.Take(); len(names) > 0 {
		t.Errorf("%v are passed on again", names)
	}
	if _, in := s.objects.groups.Get(convert.Name{Namespace: "shop", Name: "gone"}); in != nil {
		t.Error("the group of a deleted Service is held")
	}
	s.change(endpointSlices, sliceOf("cart-b", discoveryv1.AddressTypeFQDN, "a.example"), now)
	steps := s.take()
	if len(steps) != 1 || steps[0].listing == nil || steps[0].listing.Ignored["EndpointSlice"] != 1 {
		t.Errorf("the steps of a slice that is left out are %+v", steps)
	}
	s.change(endpointSlices, object{Name: convert.Name{Namespace: "shop", Name: "cart-a"}}, now)
	if steps = s.take(); len(steps) != 1 || len(steps[0].change.OwnedDeletes) != 1 {
		t.Errorf("the steps of a deleted slice are %+v", steps)
	}
}
