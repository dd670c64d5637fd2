package deploy_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// The rule and the dashboard contain the files that are tested, to the letter: templates of
// Prometheus and Grafana look like those of Helm.
func TestAlertsAndDashboardAreThoseOfTheFiles(t *testing.T) {
	t.Parallel()
	o := render(t, bridge+"prometheusRule: {enabled: true, labels: {release: stack}}\ndashboard: {enabled: true, labels: {team: mesh}}\n")
	var want any
	if err := yaml.Unmarshal(chartFile(t, "alerts.yaml"), &want); err != nil {
		t.Fatal(err)
	}
	rule := *get[map[string]any](t, o, "PrometheusRule bridge")
	if diff := cmp.Diff(want, rule["spec"]); diff != "" {
		t.Errorf("-file +rendered:\n%s", diff)
	}
	if got := rule["metadata"].(map[string]any)["labels"].(map[string]any)["release"]; got != "stack" {
		t.Errorf("the rule has the label release=%v", got)
	}
	dashboard := get[corev1.ConfigMap](t, o, "ConfigMap bridge-dashboard")
	if dashboard.Labels["grafana_dashboard"] != "1" || dashboard.Labels["team"] != "mesh" {
		t.Errorf("the dashboard has the labels %v", dashboard.Labels)
	}
	var rendered, written any
	if err := json.Unmarshal([]byte(dashboard.Data["isthmus.json"]), &rendered); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(chartFile(t, "dashboard.json"), &written); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(written, rendered); diff != "" {
		t.Errorf("-file +rendered:\n%s", diff)
	}
	plain := render(t, bridge)
	for _, name := range []string{"PrometheusRule bridge", "ConfigMap bridge-dashboard"} {
		if _, is := plain[name]; is {
			t.Errorf("%s is there without being asked for", name)
		}
	}
}

func chartFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../deploy/helm/isthmus/files/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
