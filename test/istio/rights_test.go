package istio_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
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

// grant gives the group its rights, and waits until it has them.
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
		if err := awaitAccess(ctx, client, accesses(role, "anybody", group)); err != nil {
			return err
		}
	}
	return nil
}

// awaitAccess waits until users may do all of this.
func (a *api) awaitAccess(all ...cluster.Access) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), until.Patience)
	defer cancel()
	if err := awaitAccess(ctx, a.client, all); err != nil {
		a.t.Fatal(err)
	}
}

func awaitAccess(ctx context.Context, client *cluster.Client, all []cluster.Access) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for len(all) > 0 {
		allowed, err := client.Allows(ctx, all[0])
		if err != nil {
			return fmt.Errorf("waiting for the right %+v: %w", all[0], err)
		}
		if allowed {
			all = all[1:]
			continue
		}
		<-again.C // an API server that is asked says when it is too late
	}
	return nil
}

// accesses are what a role gives to a user, as far as it names one thing of each kind.
func accesses(role *unstructured.Unstructured, user string, groups ...string) (all []cluster.Access) {
	first := func(rule fields, field string) string {
		if list, _, _ := unstructured.NestedStringSlice(rule, field); len(list) > 0 {
			return list[0]
		}
		return ""
	}
	rules, _, _ := unstructured.NestedSlice(role.Object, "rules")
	for _, r := range rules {
		rule, _ := r.(fields)
		all = append(all, cluster.Access{
			User: user, Groups: groups, Verb: first(rule, "verbs"), Group: first(rule, "apiGroups"), Resource: first(rule, "resources"),
			Name: first(rule, "resourceNames"), Namespace: role.GetNamespace(),
		})
	}
	return all
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
