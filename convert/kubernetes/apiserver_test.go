package kubernetes_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/isthmus-mesh/isthmus/convert/kubernetes"
)

// The Service of its API servers is what every cluster has for itself: clients are given the
// endpoints of their own cluster. No other Service is, and a name leads where it leads.
func TestTheServiceOfTheAPIServersIsOfItsCluster(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{metadata: {namespace: default, name: kubernetes}, spec: {clusterIP: 10.0.0.1, ports: [{name: https, port: 443, targetPort: 6443}]}}`: true,
		`{metadata: {namespace: shop, name: kubernetes}, spec: {clusterIP: 10.0.0.2, ports: [{name: https, port: 443}]}}`:                      false,
		`{metadata: {namespace: default, name: web}, spec: {clusterIP: 10.0.0.3, ports: [{name: https, port: 443}]}}`:                          false,
		`{metadata: {namespace: default, name: kubernetes}, spec: {type: ExternalName, externalName: a.example, ports: [{port: 443}]}}`:        false,
	} {
		read := kubernetes.Cluster{Domain: "cluster.local", Name: "east"}.ReadService(parse[corev1.Service](t, text))
		if got := read.Spec.Traffic.ClusterLocal; got != want {
			t.Errorf("%s is of its cluster: %t", text, got)
		}
	}
}
