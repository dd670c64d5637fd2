// Package deploy_test keeps what is deployed in step with the program: the
// chart renders objects that Kubernetes knows, with the least rights, and a
// configuration that Isthmus takes; the unit of systemd is one.
package deploy_test

import (
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/test/deploy/chart"
)

// objects are what a chart renders, by kind and name.
type objects map[string]any

// render renders the chart with values, written as a user writes them.
func render(t *testing.T, values string) objects {
	t.Helper()
	documents, err := tryRender(values)
	if err != nil {
		t.Fatal(err)
	}
	found := objects{}
	for _, d := range documents {
		found.add(t, d.File, d.Text)
	}
	return found
}

func tryRender(values string) ([]chart.Document, error) {
	return chart.Render("../../deploy/helm/isthmus", "bridge", "mesh", values)
}

// add decodes a document as strictly as an API server does when asked to.
func (o objects) add(t *testing.T, file, document string) {
	t.Helper()
	var head struct {
		Kind     string
		Metadata struct{ Name, Namespace string }
	}
	if err := yaml.Unmarshal([]byte(document), &head); err != nil {
		t.Fatalf("%s: %v\n%s", file, err, document)
	}
	if head.Kind == "" {
		return // only a comment
	}
	into := map[string]any{
		"ConfigMap": &corev1.ConfigMap{}, "Deployment": &appsv1.Deployment{}, "Service": &corev1.Service{},
		"ServiceAccount": &corev1.ServiceAccount{}, "ClusterRole": &rbacv1.ClusterRole{}, "Role": &rbacv1.Role{},
		"ClusterRoleBinding": &rbacv1.ClusterRoleBinding{}, "RoleBinding": &rbacv1.RoleBinding{},
		"PodDisruptionBudget": &policyv1.PodDisruptionBudget{}, "NetworkPolicy": &networkingv1.NetworkPolicy{},
		"ServiceMonitor": &map[string]any{}, "PrometheusRule": &map[string]any{},
	}[head.Kind]
	if into == nil {
		t.Fatalf("%s: unknown kind %q", file, head.Kind)
	}
	if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
		t.Fatalf("%s: %v\n%s", file, err, document)
	}
	o[head.Kind+" "+head.Metadata.Name] = into
}

func get[T any](t *testing.T, o objects, name string) *T {
	t.Helper()
	object, ok := o[name].(*T)
	if !ok {
		t.Fatalf("the chart renders no %s", name)
	}
	return object
}

// configuration loads what the chart has Isthmus read.
func configuration(t *testing.T, o objects) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "isthmus.yaml")
	text := get[corev1.ConfigMap](t, o, "ConfigMap bridge").Data["isthmus.yaml"]
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(path)
	if err != nil {
		t.Fatalf("Isthmus does not take the configuration of the chart: %v\n%s", err, text)
	}
	return c
}
