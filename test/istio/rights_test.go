package istio_test

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// group is that of every Isthmus. It may do what is needed and nothing else, so
// all tests show that this is enough.
const group = "isthmus"

var (
	clusterRoles = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	roleBindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
)

const role = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: isthmus}
rules:
- apiGroups: [networking.istio.io]
  resources: [serviceentries]
  verbs: [get, list, watch, create, update, patch, delete]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, update]
`

const binding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: isthmus}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: isthmus}
subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: isthmus}]
`

// grant gives the group its rights.
func grant(ctx context.Context, c *cluster.Cluster) error {
	client, err := c.API.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	if err := apply(ctx, client, clusterRoles, role); err != nil {
		return err
	}
	return apply(ctx, client, roleBindings, binding)
}

// apply applies a manifest.
func apply(ctx context.Context, client *cluster.Client, kind schema.GroupVersionResource, manifest string) error {
	var object unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		return err
	}
	return client.Apply(ctx, kind, &object)
}
