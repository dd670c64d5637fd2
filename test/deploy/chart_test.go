package deploy_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	convert "github.com/isthmus-mesh/isthmus/convert/istio"
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

// What is named is on, as in the configuration itself, and nothing else is.
func TestOutputsAreThoseThatAreNamed(t *testing.T) {
	t.Parallel()
	const secured = "{tls: {certFile: /tls/a, keyFile: /tls/b}}"
	for outputs, want := range map[string]string{
		"":                                  "istio",
		"{}":                                "istio",
		"{istio: {}}":                       "istio",
		"{xds: " + secured + "}":            "xds :15010",
		"{xds: {insecure: true}}":           "xds :15010",
		"{xds: {listen: '127.0.0.1:7'}}":    "xds 127.0.0.1:7",
		"{istio: {}, xds: " + secured + "}": "istio xds :15010",
		"{istio: null, xds: {listen: ':15011', insecure: true}}": "xds :15011",
		"{xds: null, istio: {sidecars: true}}":                   "istio",
		"{xds: null, istio: {leaderElection: {}}}":               "istio",
	} {
		values := bridge
		if outputs != "" {
			values += "  outputs: " + outputs + "\n"
		}
		o := render(t, values)
		var parsed struct {
			Outputs map[string]struct{ Listen string }
		}
		if err := yaml.Unmarshal([]byte(get[corev1.ConfigMap](t, o, "ConfigMap bridge").Data["isthmus.yaml"]), &parsed); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, kind := range slices.Sorted(maps.Keys(parsed.Outputs)) {
			got = append(got, strings.TrimSpace(kind+" "+parsed.Outputs[kind].Listen))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("outputs: %s are %v, want %s", outputs, got, want)
		}
		if _, writes := o["ClusterRole bridge-mesh"]; writes != strings.HasPrefix(want, "istio") {
			t.Errorf("with outputs: %s it may write to Kubernetes: %v", outputs, writes)
		}
		if _, serves := o["Service bridge"]; serves != strings.Contains(want, "xds") {
			t.Errorf("with outputs: %s there is a service for proxies: %v", outputs, serves)
		}
	}
	for outputs, want := range map[string]string{
		"{istio: null}":          "name one, such as xds",
		"{xds: {}}":              "set tls",
		"{xds: null, mcp: null}": "name one",
		"{xds: true}":            "xds",
	} {
		if _, err := tryRender(bridge + "  outputs: " + outputs + "\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("outputs: %s are taken: %v", outputs, err)
		}
	}
}

// Isthmus leaves a part of the memory to what Go does not count; a GOMEMLIMIT of
// the chart would have it do without.
func TestProgramGetsItsMemoryLimit(t *testing.T) {
	t.Parallel()
	c := get[appsv1.Deployment](t, render(t, proxies+"env: [{name: GOMEMLIMIT, value: 1GiB}]\n"), "Deployment bridge").Spec.Template.Spec.Containers[0]
	var own []string
	for _, e := range c.Env {
		switch {
		case e.ValueFrom != nil && e.ValueFrom.ResourceFieldRef != nil:
			f := e.ValueFrom.ResourceFieldRef
			if e.Name != "ISTHMUS_MEMORY_LIMIT" || f.Resource != "limits.memory" || f.ContainerName != c.Name || !f.Divisor.IsZero() {
				t.Errorf("it is given %s by %+v", e.Name, f)
			}
			own = append(own, e.Name)
		case e.Name == "GOMEMLIMIT":
			own = append(own, e.Name+"="+e.Value)
		}
	}
	if fmt.Sprint(own) != "[ISTHMUS_MEMORY_LIMIT GOMEMLIMIT=1GiB]" {
		t.Errorf("the container has %v", own)
	}
	if c.Resources.Limits.Memory().IsZero() {
		t.Error("the container has no limit")
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

func TestUnreadyPodKeepsNoNodeFromBeingDrained(t *testing.T) {
	t.Parallel()
	budget := get[policyv1.PodDisruptionBudget](t, render(t, proxies), "PodDisruptionBudget bridge")
	if p := budget.Spec.UnhealthyPodEvictionPolicy; p == nil || *p != policyv1.AlwaysAllow {
		t.Errorf("the budget evicts %v", p)
	}
}

func TestOneReplicaNeedsNoBudget(t *testing.T) {
	t.Parallel()
	if _, is := render(t, proxies+"replicas: 1\n")["PodDisruptionBudget bridge"]; is {
		t.Error("a budget that keeps the only replica keeps nodes from being drained")
	}
}

// events is the optional rule, which is granted where objects are read or written.
const events = "{[create patch] [] [events] [] []}"

func TestRightsToWriteAreTheLeast(t *testing.T) {
	t.Parallel()
	o := render(t, bridge)
	role := get[rbacv1.ClusterRole](t, o, "ClusterRole bridge-mesh")
	if got, want := fmt.Sprint(role.Rules), "[{[get list watch create update patch delete] [networking.istio.io] [serviceentries] [] []} {[list watch delete] [networking.istio.io] [workloadentries] [] []} {[list watch delete] [networking.istio.io] [sidecars] [] []} {[list watch delete] [networking.istio.io] [destinationrules] [] []} "+events+"]"; got != want {
		t.Errorf("it may %s, want %s", got, want)
	}
	if got := fmt.Sprint(get[rbacv1.ClusterRole](t, render(t, bridge+"rbac: {events: false}\n"), "ClusterRole bridge-mesh").Rules); strings.Contains(got, "events") {
		t.Errorf("without rbac.events it may %s", got)
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
	alone := render(t, bridge+"  outputs: {istio: {leaderElection: {enabled: false}, sidecars: true, endpoints: auto, shares: destinationRules}}\n")
	if _, is := alone["Role bridge"]; is {
		t.Error("who does not elect needs no lease")
	}
	if rules := get[rbacv1.ClusterRole](t, alone, "ClusterRole bridge-mesh").Rules; fmt.Sprint(rules[0].Resources) != "[serviceentries workloadentries sidecars destinationrules]" || len(rules) != 2 {
		t.Errorf("who writes all kinds may only write %v", rules[0].Resources)
	}
}

// The Lease marks the written cluster, also without an election, if sources may read that
// cluster.
func TestRightsToTheMarkerAreGivenIfClustersAreCompared(t *testing.T) {
	t.Parallel()
	const marks = "[{[create] [coordination.k8s.io] [leases] [] []} {[get] [coordination.k8s.io] [leases] [bridge] []}]"
	const elects = "[{[create] [coordination.k8s.io] [leases] [] []} {[get update] [coordination.k8s.io] [leases] [bridge] []}]"
	const alone = "leaderElection: {enabled: false}"
	for values, want := range map[string]string{
		"outputs: {istio: {}}\n  sources: [{name: far, kubernetes: {kubeconfig: /far}}]":                                                elects,
		"outputs: {istio: {" + alone + "}}\n  sources: [{name: far, kubernetes: {kubeconfig: /far}}]":                                   marks,
		"outputs: {istio: {" + alone + "}}\n  sources: [{name: here, kubernetes: }]":                                                    marks,
		"outputs: {istio: {" + alone + ", sources: [far]}}\n  sources: [{name: far, kubernetes: {kubeconfig: /far}}]":                   "",
		"outputs: {istio: {" + alone + "}}\n  sources: [{name: files, file: {path: /registry}}]":                                        "",
		"outputs: {istio: {}}\n  sources: [{name: here, kubernetes: {}}]\nrbac: {create: false}":                                        "",
		"outputs: {istio: {leaderElection: {enabled: true}, sources: [far]}}\n  sources: [{name: far, kubernetes: {kubeconfig: /far}}]": elects,
	} {
		got, o := "", render(t, "config:\n  "+values+"\n")
		if _, is := o["Role bridge"]; is {
			role := get[rbacv1.Role](t, o, "Role bridge")
			if got = fmt.Sprint(role.Rules); role.Namespace != "mesh" || get[rbacv1.RoleBinding](t, o, "RoleBinding bridge").Subjects[0].Name != "bridge" {
				t.Errorf("%s: the role is %+v", values, role)
			}
		}
		if got != want {
			t.Errorf("%s: the rights are %s, want %s", values, got, want)
		}
	}
}

// Only what a source of kind kubernetes reads may be read, and only in the cluster that
// Isthmus runs in: others come with a user of their own.
func TestRightsToReadAreTheLeast(t *testing.T) {
	t.Parallel()
	const from = "config:\n  outputs: {xds: {listen: ':15010', insecure: true}}\n  sources: "
	const whole = "[{[list watch] [] [services nodes pods] [] []} {[list watch] [discovery.k8s.io] [endpointslices] [] []} " +
		"{[list watch] [networking.istio.io] [serviceentries workloadentries workloadgroups sidecars] [] []} " +
		"{[list watch] [split.smi-spec.io] [trafficsplits] [] []} " + events + "]"
	const least = "[{[list watch] [] [services nodes] [] []} {[list watch] [discovery.k8s.io] [endpointslices] [] []} " + events + "]"
	carried := func(resources string) string {
		return strings.TrimSuffix(least, events+"]") + "{[list watch] [networking.istio.io security.istio.io telemetry.istio.io extensions.istio.io] [" + resources + "] [] []} " + events + "]"
	}
	for sources, want := range map[string]string{
		"[{name: here, kubernetes: {}}]":                                                whole,
		"[{name: here, kubernetes: }]":                                                  whole,
		"[{name: here, kubernetes: {pods: false, istio: false, smi: false}}]":           least,
		"[{name: a, kubernetes: {istio: false}}, {name: b, kubernetes: {pods: false}}]": whole,
		"[{name: a, kubernetes: {pods: false, istio: false, smi: false, carry: [Telemetry, Gateway]}}, {name: b, kubernetes: {pods: false, istio: false, smi: false, carry: [AuthorizationPolicy]}}]": carried(`authorizationpolicies gateways telemetries`),
		"[{name: a, kubernetes: {pods: false, istio: false, smi: false, carry: [all]}}]":                                                                                                              carried("*"),
		"[{name: there, kubernetes: {kubeconfig: /east}}, {name: files, file: {path: /registry}}]":                                                                                                    "",
		"[{name: there, kubernetes: {context: east}}]":                                                                                                                                                "",
	} {
		o := render(t, from+sources+"\n")
		if _, granted := o["ClusterRole bridge-mesh-source"]; !granted {
			if want != "" {
				t.Errorf("sources: %s may read nothing", sources)
			}
			continue
		}
		if got := fmt.Sprint(get[rbacv1.ClusterRole](t, o, "ClusterRole bridge-mesh-source").Rules); got != want {
			t.Errorf("sources: %s may %s, want %s", sources, got, want)
		}
		if s := get[rbacv1.ClusterRoleBinding](t, o, "ClusterRoleBinding bridge-mesh-source").Subjects[0]; s.Name != "bridge" || s.Namespace != "mesh" {
			t.Errorf("rights are given to %+v", s)
		}
	}
	if _, is := render(t, from+"[{name: here, kubernetes: {}}]\nrbac: {create: false}\n")["ClusterRole bridge-mesh-source"]; is {
		t.Error("rights are given though rbac.create is false")
	}
	for kind, sources := range map[string]string{"ClusterRole": "[{name: here, kubernetes: {}}]", "Role": "[{name: here, kubernetes: {namespaces: [shop]}}]"} {
		if got := fmt.Sprint(render(t, from+sources+"\nrbac: {events: false}\n")[kind+" bridge-mesh-source"]); strings.Contains(got, "events") {
			t.Errorf("without rbac.events, sources: %s may %s", sources, got)
		}
	}
}

// The chart gives the rights for each kind that can be carried by the name that the kind has
// in an API server.
func TestRightsToEachCarriedKindAreGiven(t *testing.T) {
	t.Parallel()
	for _, d := range (convert.Carry{convert.Everything}).Definitions() {
		o := render(t, "config:\n  outputs: {xds: {listen: ':15010', insecure: true}}\n  sources: [{name: a, kubernetes: {istio: false, carry: ["+d.Name+"]}}]\nrbac: {events: false}\n")
		rules := get[rbacv1.ClusterRole](t, o, "ClusterRole bridge-mesh-source").Rules
		if last := rules[len(rules)-1]; !slices.Equal(last.Resources, []string{d.Resource()}) || !slices.Contains(last.APIGroups, d.Group) {
			t.Errorf("to carry %s it may %v", d.Name, last)
		}
	}
}

// With namespaces, a source's rights are of these alone; nodes are in none.
func TestRightsFollowTheNamespacesOfSources(t *testing.T) {
	t.Parallel()
	const from = "config:\n  outputs: {xds: {listen: ':15010', insecure: true}}\n  sources: "
	const plain = "{[list watch] [] [services pods] [] []} {[list watch] [discovery.k8s.io] [endpointslices] [] []}"
	for sources, want := range map[string]string{
		"[{name: a, kubernetes: {namespaces: [shop], istio: false, smi: false}}]": plain,
		"[{name: a, kubernetes: {namespaces: [shop], istio: false}}, {name: b, kubernetes: {namespaces: [shop], pods: false}}]": plain +
			" {[list watch] [networking.istio.io] [serviceentries workloadentries workloadgroups sidecars] [] []} {[list watch] [split.smi-spec.io] [trafficsplits] [] []}",
		"[{name: a, kubernetes: {namespaces: [alpha, shop], istio: false, smi: false, carry: [Gateway]}}, {name: b, kubernetes: {namespaces: [alpha], carry: [Telemetry]}}]": plain +
			" {[list watch] [networking.istio.io security.istio.io telemetry.istio.io extensions.istio.io] [gateways] [] []}",
	} {
		o := render(t, from+sources+"\n")
		if got := fmt.Sprint(get[rbacv1.ClusterRole](t, o, "ClusterRole bridge-mesh-source").Rules); got != "[{[list watch] [] [nodes] [] []}]" {
			t.Errorf("%s: in all namespaces it may %s", sources, got)
		}
		role := get[rbacv1.Role](t, o, "Role bridge-mesh-source")
		if got := fmt.Sprint(role.Rules); role.Namespace != "shop" || got != "["+want+" "+events+"]" {
			t.Errorf("%s: in %s it may %s, want %s", sources, role.Namespace, got, want)
		}
		binding := get[rbacv1.RoleBinding](t, o, "RoleBinding bridge-mesh-source")
		if s := binding.Subjects[0]; binding.Namespace != "shop" || binding.RoleRef.Name != role.Name || s.Name != "bridge" || s.Namespace != "mesh" {
			t.Errorf("%s: the binding is %+v", sources, binding)
		}
	}
	whole := render(t, from+"[{name: a, kubernetes: {namespaces: [shop], istio: false}}, {name: b, kubernetes: {pods: false, istio: false}}]\n")
	if got := fmt.Sprint(get[rbacv1.ClusterRole](t, whole, "ClusterRole bridge-mesh-source").Rules); !strings.Contains(got, "[services nodes]") {
		t.Errorf("beside a source of all namespaces it may %s", got)
	}
}

// A token of the service account is in the pod only if something speaks with the API server.
func TestTokensAreMountedOnlyWhereNeeded(t *testing.T) {
	t.Parallel()
	const xds = "config:\n  outputs: {xds: {listen: ':15010', insecure: true}}\n  sources: "
	for values, want := range map[string]bool{
		bridge: true, // it writes to Istio
		xds + "[{name: files, file: {path: /registry}}]":                                 false,
		xds + "[{name: here, kubernetes: {}}]":                                           true,
		xds + "[{name: here, kubernetes: }]":                                             true,
		xds + "[{name: there, kubernetes: {kubeconfig: /east}}]":                         false,
		xds + "[{name: cloud, azure: {credentials: {managedIdentity: {}}}}]":             false,
		xds + "[{name: a, azure: {kubernetes: {}}}, {name: b, file: {path: /registry}}]": true,
	} {
		pod := get[appsv1.Deployment](t, render(t, values+"\n"), "Deployment bridge").Spec.Template.Spec
		if got := pod.AutomountServiceAccountToken; got == nil || *got != want {
			t.Errorf("%s: a token is mounted: %v", values, got)
		}
	}
}

// Sinks of MCP and readers of records have ports, which only peers reach that the values name.
func TestOutputsHavePortsAndPolicies(t *testing.T) {
	t.Parallel()
	ports := func(values string) (service, policy string) {
		o := render(t, values)
		for _, p := range get[corev1.Service](t, o, "Service bridge").Spec.Ports {
			service += fmt.Sprintf("%s=%d ", p.Name, p.Port)
		}
		for _, rule := range get[networkingv1.NetworkPolicy](t, o, "NetworkPolicy bridge").Spec.Ingress {
			policy += rule.Ports[0].Port.String() + " "
		}
		return service, policy
	}
	for output, port := range map[string]string{"mcp": "15013", "watch": "15020"} {
		values := bridge + "  outputs: {" + output + ": {listen: ':" + port + "', insecure: true}}\n"
		if service, policy := ports(values); service != "grpc-"+output+"="+port+" " || policy != "admin " {
			t.Errorf("%s: the service has %q, the policy allows %q", output, service, policy)
		}
		if _, policy := ports(values + "networkPolicy: {" + output + "From: [{podSelector: {}}]}\n"); policy != "admin grpc-"+output+" " {
			t.Errorf("%s: the policy allows %q", output, policy)
		}
	}
}

func TestImagesByDigest(t *testing.T) {
	t.Parallel()
	digest := "sha256:" + strings.Repeat("0a", 32)
	d := get[appsv1.Deployment](t, render(t, bridge+"image: {repository: registry.example/isthmus, tag: v1, digest: '"+digest+"'}\n"), "Deployment bridge")
	if got := d.Spec.Template.Spec.Containers[0].Image; got != "registry.example/isthmus@"+digest {
		t.Errorf("the image is %s", got)
	}
	if _, err := tryRender(bridge + "image: {repository: a, digest: latest}\n"); err == nil {
		t.Error("any text is a digest")
	}
}
