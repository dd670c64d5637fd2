package istio_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// group is that of every Isthmus in the tests. It has the rights that the
// documentation says are needed, and no others.
const group = "isthmus"

// binding gives the group the rights of a role, in the role's own scope.
const binding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: %[1]sBinding
metadata: {name: isthmus, namespace: %[2]q}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %[1]s, name: %[3]s}
subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: isthmus}]
`

// grant gives the group its rights.
func grant(ctx context.Context, c *cluster.Cluster) error {
	client, err := c.API.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	manifests, err := documentedRights()
	if err != nil {
		return err
	}
	for _, manifest := range manifests {
		role, err := object(manifest)
		if err != nil {
			return err
		}
		bound := fmt.Sprintf(binding, role.GetKind(), role.GetNamespace(), role.GetName())
		for _, manifest := range []string{manifest, bound} {
			if err := applyRights(ctx, client, manifest); err != nil {
				return err
			}
		}
	}
	return nil
}

// documentedRights are the manifests in the reference.
func documentedRights() ([]string, error) {
	text, err := os.ReadFile(filepath.Join(programs.Repository, "docs", "reference", "istio.md"))
	if err != nil {
		return nil, err
	}
	_, rights, _ := strings.Cut(string(text), "\n## Rights\n")
	_, block, _ := strings.Cut(rights, "```yaml\n")
	block, _, found := strings.Cut(block, "```\n")
	if !found {
		return nil, errors.New("docs/reference/istio.md has no manifest under Rights")
	}
	return strings.Split(block, "---\n"), nil
}

func applyRights(ctx context.Context, client *cluster.Client, manifest string) error {
	o, err := object(manifest)
	if err != nil {
		return err
	}
	return client.Apply(ctx, schema.GroupVersionResource{
		Group: "rbac.authorization.k8s.io", Version: "v1", Resource: strings.ToLower(o.GetKind()) + "s",
	}, o)
}

// object is what a manifest says.
func object(manifest string) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	err := yaml.Unmarshal([]byte(manifest), &o.Object)
	return o, err
}

// apply applies a manifest.
func apply(ctx context.Context, client *cluster.Client, kind schema.GroupVersionResource, manifest string) error {
	o, err := object(manifest)
	if err != nil {
		return err
	}
	return client.Apply(ctx, kind, o)
}
