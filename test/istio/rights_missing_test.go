package istio_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// TestMissingRightsAreNamedAndGiven has a dry run as an account that may read, but write
// in one namespace only. It names the rights that are missing in the other, and once
// its manifest is applied there are none.
func TestMissingRightsAreNamedAndGiven(t *testing.T) {
	t.Parallel()
	api, registry := connect(t, shared), startRegistry(t)
	registry.Add("web", "10.0.0.1:80")
	b := api.Bridge(registry, "review").withDefaults()
	late := api.Bridge(registry, "review-late")
	b.late, b.alone = &late, true
	name := "reviewed-" + b.namespace
	for _, manifest := range []string{
		role("ClusterRole", "", name, "get, list, watch"), bindingOf("ClusterRole", "", name),
		role("Role", b.namespace, name, "create, update, patch, delete"), bindingOf("Role", b.namespace, name),
	} {
		if err := applyRights(t.Context(), api.client, manifest); err != nil {
			t.Fatal(err)
		}
	}
	api.awaitAccess(
		cluster.Access{User: name, Verb: "list", Group: "networking.istio.io", Resource: "serviceentries"},
		cluster.Access{User: name, Verb: "delete", Group: "networking.istio.io", Resource: "serviceentries", Namespace: b.namespace},
	)
	missing, manifest := rehearsedRights(t, api, b, name)
	want := []string{"create, update, patch, delete serviceentries in " + late.namespace}
	if !slices.Equal(missing, want) {
		t.Errorf("missing are %q, want %q", missing, want)
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(manifest, "---\n"), "---\n") {
		if !strings.Contains(part, late.namespace) {
			continue // other tests hand objects over, too, which this account may not write
		}
		if err := applyRights(t.Context(), api.client, part); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "the rights to be there", func() error {
		if missing, _ := rehearsedRights(t, api, b, name); len(missing) > 0 {
			return fmt.Errorf("missing are %q", missing)
		}
		return nil
	})
	if writes := api.own(b.namespace); len(writes) > 0 {
		t.Errorf("it wrote %+v", writes)
	}
}

func role(kind, namespace, name, verbs string) string {
	return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: %s
metadata: {name: %s, namespace: %q}
rules: [{apiGroups: [networking.istio.io], resources: [serviceentries], verbs: [%s]}]
`, kind, name, namespace, verbs)
}

func bindingOf(kind, namespace, name string) string {
	return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: %[1]sBinding
metadata: {name: %[3]s, namespace: %[2]q}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %[1]s, name: %[3]s}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: %[3]s}]
`, kind, namespace, name)
}

// rehearsedRights are the rights that a dry run finds missing in the namespaces of a
// bridge and of its late one, and its manifest.
func rehearsedRights(t *testing.T, a *api, b bridge, user string) (missing []string, manifest string) {
	t.Helper()
	dir := t.TempDir()
	kubeconfig, config := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "isthmus.yaml")
	if err := a.server.WriteKubeconfig(kubeconfig, user); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(b.config(kubeconfig)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), program, "serve", "--config", config, "--dry-run", "-o", "json").Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var plan struct {
		Rights struct {
			Missing []struct {
				Namespace, Resource string
				Verbs               []string
			}
			Manifest, Reason string
		}
	}
	if err := json.Unmarshal(out, &plan); err != nil {
		t.Fatal(err)
	}
	if plan.Rights.Reason != "" {
		t.Error(plan.Rights.Reason)
	}
	for _, right := range plan.Rights.Missing {
		if right.Namespace != "" && right.Namespace != b.namespace && right.Namespace != b.late.namespace {
			continue
		}
		missing = append(missing, fmt.Sprintf("%s %s in %s", strings.Join(right.Verbs, ", "), right.Resource, right.Namespace))
	}
	return missing, plan.Rights.Manifest
}
