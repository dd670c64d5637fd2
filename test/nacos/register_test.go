package nacos_test

import (
	"maps"
	"testing"
)

// Instances come, change, and go, each with a workload that uses Nacos's own client.
func TestInstancesAppearChangeAndGo(t *testing.T) {
	t.Parallel()
	n := useShared(t)
	one, two := newWorkload(t, n), newWorkload(t, n)
	views := look(t, n.readers)
	const host = "orders.DEFAULT-GROUP.public.nacos"
	one.do(order{Service: "orders", Address: "10.1.0.1", Port: 8080})
	expect(t, views, host, "10.1.0.1:8080")

	two.do(order{Service: "orders", Address: "10.1.0.2", Port: 9090, Weight: 3, Metadata: map[string]string{"version": "v1"}})
	expect(t, views, host, "10.1.0.1:8080", "10.1.0.2:9090 weight 3")
	labels(t, views, host, "10.1.0.2", map[string]string{"cluster": "DEFAULT", "version": "v1"})

	two.do(order{Service: "orders", Address: "10.1.0.2", Port: 9090, Weight: 5, Metadata: map[string]string{"version": "v2"}})
	expect(t, views, host, "10.1.0.1:8080", "10.1.0.2:9090 weight 5")
	labels(t, views, host, "10.1.0.2", map[string]string{"cluster": "DEFAULT", "version": "v2"})

	one.do(order{Remove: true, Service: "orders", Address: "10.1.0.1", Port: 8080})
	expect(t, views, host, "10.1.0.2:9090 weight 5")

	two.kill() // as a crash
	expect(t, views, host)

	one.do(order{Service: "orders", Address: "10.1.0.3", Port: 8080})
	expect(t, views, host, "10.1.0.3:8080")
}

// labels expects those of an instance.
func labels(t *testing.T, views []view, host, address string, want map[string]string) {
	t.Helper()
	for _, v := range views {
		found := false
		for _, i := range v.service(t, host).Instances {
			if i.Address != address {
				continue
			}
			if found = true; !maps.Equal(i.Labels, want) {
				t.Errorf("%s: %s has labels %v, want %v", v.name, address, i.Labels, want)
			}
		}
		if !found {
			t.Errorf("%s: %s has no instance at %s", v.name, host, address)
		}
	}
}

// Groups and namespaces are in the name, a protocol in the port. A host may be given.
func TestNamesSayGroupAndNamespace(t *testing.T) {
	t.Parallel()
	n := useShared(t)
	views := look(t, n.readers)
	n.mustRegister(t, instance{Service: "stock", Group: "G1", Namespace: "dev", IP: "10.2.0.1", Port: 8080})
	expect(t, views, "stock.G1.dev.nacos", "10.2.0.1:8080")
	for _, v := range views {
		if s := v.service(t, "stock.G1.dev.nacos"); s.Namespace != "dev" {
			t.Errorf("%s: it is in namespace %q", v.name, s.Namespace)
		}
	}
	w := newWorkload(t, n)
	w.do(order{Service: "prices", Address: "10.2.0.2", Port: 9000, Metadata: map[string]string{"protocol": "grpc", "istio.hostname": "prices.example"}})
	expect(t, views, "prices.example.nacos", "10.2.0.2:9000")
}
