package istio_test

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// TestChartIsInstalled shows that an API server takes everything that the chart
// renders, and that Isthmus can do its work with the configuration and the
// rights which that gives it, and no others. That there are pods would need a
// node.
func TestChartIsInstalled(t *testing.T) {
	t.Parallel()
	api, registry := connect(t, shared), startRegistry(t)
	registry.Add("reviews", "10.0.0.1:8000", "10.0.0.2:8000")
	b := api.Bridge(registry, "chart").withDefaults()
	b.scoped, b.dataDir = true, t.TempDir()
	account := "system:serviceaccount:" + b.namespace + ":bridge"
	kubeconfig := t.TempDir() + "/kubeconfig"
	if err := api.server.WriteKubeconfig(kubeconfig, account, "system:serviceaccounts", "system:serviceaccounts:"+b.namespace, "system:authenticated"); err != nil {
		t.Fatal(err)
	}
	own := strings.Replace(b.config(kubeconfig), "127.0.0.1:0", "127.0.0.1:"+freePort(t), 1) // which a container has to name
	values := "config:\n  " + strings.ReplaceAll(strings.TrimSpace(own), "\n", "\n  ")
	installed := api.install(values, b.namespace)
	for _, kind := range []string{"ConfigMap", "Deployment", "ServiceAccount", "ClusterRole", "Role", "PodDisruptionBudget", "NetworkPolicy"} {
		if installed[kind] == nil {
			t.Errorf("the chart has no %s", kind)
		}
	}

	config, _, _ := unstructured.NestedString(installed["ConfigMap"].Object, "data", "isthmus.yaml")
	i := serveConfig(t, "chart", config)
	i.AwaitWriter("writing")
	api.AwaitMirror(b)
	registry.Remove("reviews", "10.0.0.1:8000")
	registry.Add("ratings", "10.0.0.3:8000")
	api.AwaitMirror(b)
	if strings.Contains(i.Log(), "forbidden") {
		t.Errorf("it lacks rights")
	}
}

// install applies what the chart renders, of which it returns one of each kind, and waits
// until the account has its rights.
func (a *api) install(values, namespace string) map[string]*unstructured.Unstructured {
	a.t.Helper()
	helm := exec.CommandContext(a.t.Context(), "go", "-C", programs.Repository+"/test/deploy", "run", "./render", "-release", "bridge", "-namespace", namespace)
	helm.Stdin = strings.NewReader(values)
	out, err := helm.Output()
	if err != nil {
		a.t.Fatalf("rendering the chart: %v", err)
	}
	installed := map[string]*unstructured.Unstructured{}
	var rights []cluster.Access
	for manifest := range strings.SplitSeq(string(out), "\n---") {
		o, err := object(manifest)
		if err != nil {
			a.t.Fatalf("%v\n%s", err, manifest)
		}
		if o.GetKind() == "" {
			continue // but a comment
		}
		kind, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		if err := a.client.Apply(a.t.Context(), kind, o); err != nil {
			a.t.Fatalf("%v\n%s", err, manifest)
		}
		installed[o.GetKind()] = o
		if strings.HasSuffix(o.GetKind(), "Role") {
			rights = append(rights, accesses(o, "system:serviceaccount:"+namespace+":bridge")...)
		}
	}
	a.awaitAccess(rights...)
	return installed
}

// TestChartLetsASourceRead shows that the rights of the chart are those that a source of
// the cluster needs: every kind is read, and nothing is said to be forbidden.
func TestChartLetsASourceRead(t *testing.T) {
	t.Parallel()
	api := connect(t, shared)
	namespace := api.NewNamespace("reads")
	installed := api.install("config:\n  outputs: {xds: {insecure: true}}\n  sources: [{name: here, kubernetes: {}}]\n", namespace)
	if installed["ClusterRoleBinding"] == nil {
		t.Fatal("the chart gives no rights")
	}
	kubeconfig := t.TempDir() + "/kubeconfig"
	account := "system:serviceaccount:" + namespace + ":bridge"
	if err := api.server.WriteKubeconfig(kubeconfig, account, "system:serviceaccounts", "system:serviceaccounts:"+namespace, "system:authenticated"); err != nil {
		t.Fatal(err)
	}
	i := serveConfig(t, "reads", fmt.Sprintf(`
sources: [{name: legacy, localAddresses: allow, kubernetes: {kubeconfig: %s}}]
outputs: {xds: {listen: "127.0.0.1:0"}}
admin: {listen: "127.0.0.1:0"}
log: {level: debug, format: text}
`, kubeconfig))
	i.AwaitState("live")
	if strings.Contains(i.Log(), "forbidden") {
		t.Error("it lacks rights")
	}
	var sources []struct{ Refused []any }
	if err := i.ask(http.MethodGet, "/api/v1/sources", &sources); err != nil {
		t.Fatal(err)
	}
	if len(sources) != 1 || len(sources[0].Refused) > 0 {
		t.Errorf("it cannot read all: %+v", sources)
	}
}
