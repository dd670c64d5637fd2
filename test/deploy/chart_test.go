package deploy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/isthmus-mesh/isthmus/output/istio"
)

const (
	bridge = `
config:
  sources:
  - name: legacy
    file: {path: /registry}
`
	proxies = bridge + `
  outputs:
    istio: null
    xds: {listen: ":15010", insecure: true}
`
)

func TestChartNeedsARegistry(t *testing.T) {
	t.Parallel()
	_, err := tryRender("")
	if err == nil || !strings.Contains(err.Error(), "sources") {
		t.Errorf("without a registry: %v", err)
	}
	if _, err := tryRender(bridge + "replica: 3"); err == nil || !strings.Contains(err.Error(), "replica") {
		t.Errorf("with a value that there is not: %v", err)
	}
}

func TestChartConfiguresIsthmus(t *testing.T) {
	t.Parallel()
	c := configuration(t, render(t, proxies))
	if c.Admin.Listen != ":8080" || c.Store.DataDir != "/var/lib/isthmus" || c.Outputs.Of("xds").String() != "on :15010" || c.Sources[0].Name != "legacy" {
		t.Errorf("the chart makes it %+v", c)
	}
	// What the user says goes before what the chart decides.
	own := configuration(t, render(t, proxies+"  admin: {listen: \"127.0.0.1:9090\"}\n  store: {dataDir: /elsewhere}\n"))
	if own.Admin.Listen != "127.0.0.1:9090" || own.Store.DataDir != "/elsewhere" {
		t.Errorf("the chart makes it %+v", own)
	}
}

func TestChartNamesTheLeaseOfTheRelease(t *testing.T) {
	t.Parallel()
	c := configuration(t, render(t, bridge))
	if e := c.Outputs.Of("istio").(*istio.Config).LeaderElection; !e.Enabled || e.Namespace != "mesh" || e.Name != "bridge" || c.Outputs.Of("xds") != nil {
		t.Errorf("the chart makes it %+v", c.Outputs)
	}
}

func TestPodsHaveWhatTheyMountAndNoMoreRightsThanTheyNeed(t *testing.T) {
	t.Parallel()
	o := render(t, proxies)
	d := get[appsv1.Deployment](t, o, "Deployment bridge")
	pod := d.Spec.Template.Spec
	c := pod.Containers[0]
	if *d.Spec.Replicas != 2 || fmt.Sprint(c.Args) != "[serve --config /etc/isthmus/isthmus.yaml]" {
		t.Errorf("%d replicas run %v", *d.Spec.Replicas, c.Args)
	}
	for _, m := range c.VolumeMounts {
		if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
			t.Errorf("nothing is there to mount as %s", m.Name)
		}
		if m.SubPath != "" {
			t.Errorf("%s is mounted as a file, which is never replaced", m.Name)
		}
	}
	s := c.SecurityContext
	if !*pod.SecurityContext.RunAsNonRoot || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || fmt.Sprint(s.Capabilities.Drop) != "[ALL]" {
		t.Errorf("the pod may more than it needs: %+v %+v", pod.SecurityContext, s)
	}
	ports := map[string]int32{}
	for _, p := range c.Ports {
		ports[p.Name] = p.ContainerPort
	}
	if fmt.Sprint(ports) != "map[admin:8080 grpc-xds:15010]" {
		t.Errorf("the container has ports %v", ports)
	}
	for name, probe := range map[string]*corev1.Probe{"/livez": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
		if probe.HTTPGet.Path != name || probe.HTTPGet.Port.StrVal != "admin" {
			t.Errorf("%s is probed by %+v", name, probe.HTTPGet)
		}
	}
	if _, is := o["ClusterRole bridge-mesh"]; is {
		t.Error("an Isthmus that does not write to Kubernetes is given rights there")
	}
}

func TestEverythingSelectsThePods(t *testing.T) {
	t.Parallel()
	o := render(t, proxies+"serviceMonitor: {enabled: true}\n")
	labels := get[appsv1.Deployment](t, o, "Deployment bridge").Spec.Template.Labels
	selectors := map[string]map[string]string{
		"the deployment": get[appsv1.Deployment](t, o, "Deployment bridge").Spec.Selector.MatchLabels,
		"the service":    get[corev1.Service](t, o, "Service bridge").Spec.Selector,
		"the admin API":  get[corev1.Service](t, o, "Service bridge-admin").Spec.Selector,
		"the budget":     get[policyv1.PodDisruptionBudget](t, o, "PodDisruptionBudget bridge").Spec.Selector.MatchLabels,
		"the policy":     get[networkingv1.NetworkPolicy](t, o, "NetworkPolicy bridge").Spec.PodSelector.MatchLabels,
	}
	for who, selector := range selectors {
		if len(selector) == 0 {
			t.Errorf("%s selects everything", who)
		}
		for name, value := range selector {
			if labels[name] != value {
				t.Errorf("%s selects %s=%s, the pods have %q", who, name, value, labels[name])
			}
		}
	}
	monitor := get[map[string]any](t, o, "ServiceMonitor bridge")
	wanted := (*monitor)["spec"].(map[string]any)["selector"].(map[string]any)["matchLabels"].(map[string]any)
	for name, value := range wanted {
		if got := get[corev1.Service](t, o, "Service bridge-admin").Labels[name]; got != value {
			t.Errorf("the monitor selects %s=%s, the service has %q", name, value, got)
		}
	}
}

func TestPolicyAdmitsNobodyItNeedNot(t *testing.T) {
	t.Parallel()
	policy := get[networkingv1.NetworkPolicy](t, render(t, proxies+"networkPolicy: {xdsFrom: [], adminFrom: []}\n"), "NetworkPolicy bridge")
	if len(policy.Spec.Ingress) != 0 || fmt.Sprint(policy.Spec.PolicyTypes) != "[Ingress]" {
		t.Errorf("nobody was named, and admitted are %+v", policy.Spec)
	}
	policy = get[networkingv1.NetworkPolicy](t, render(t, proxies), "NetworkPolicy bridge")
	for _, rule := range policy.Spec.Ingress {
		if len(rule.From) == 0 || len(rule.Ports) != 1 {
			t.Errorf("a rule admits anyone, or to anything: %+v", rule)
		}
	}
}

func TestOneReplicaNeedsNoBudget(t *testing.T) {
	t.Parallel()
	if _, is := render(t, proxies+"replicas: 1\n")["PodDisruptionBudget bridge"]; is {
		t.Error("a budget that keeps the only replica keeps nodes from being drained")
	}
}

func TestRightsToWriteAreTheLeast(t *testing.T) {
	t.Parallel()
	o := render(t, bridge)
	role := get[rbacv1.ClusterRole](t, o, "ClusterRole bridge-mesh")
	if got, want := fmt.Sprint(role.Rules), "[{[get list watch create update patch delete] [networking.istio.io] [serviceentries] [] []}]"; got != want {
		t.Errorf("it may %s, want %s", got, want)
	}
	lease := get[rbacv1.Role](t, o, "Role bridge")
	if lease.Namespace != "mesh" || fmt.Sprint(lease.Rules[1].ResourceNames) != "[bridge]" {
		t.Errorf("the lease is %+v", lease)
	}
	for _, subject := range append(get[rbacv1.ClusterRoleBinding](t, o, "ClusterRoleBinding bridge-mesh").Subjects,
		get[rbacv1.RoleBinding](t, o, "RoleBinding bridge").Subjects...) {
		if subject.Name != "bridge" || subject.Namespace != "mesh" {
			t.Errorf("rights are given to %+v", subject)
		}
	}
	alone := render(t, bridge+"  outputs: {istio: {leaderElection: {enabled: false}, sidecars: true}}\n")
	if _, is := alone["Role bridge"]; is {
		t.Error("who does not elect needs no lease")
	}
	if rules := get[rbacv1.ClusterRole](t, alone, "ClusterRole bridge-mesh").Rules; !slices.Contains(rules[0].Resources, "sidecars") {
		t.Errorf("who writes sidecars may only write %v", rules[0].Resources)
	}
}
