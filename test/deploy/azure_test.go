package deploy_test

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// The objects that define services on machines are read with the least rights, and only
// where a source reads those of the cluster.
func TestRightsToReadAzureResources(t *testing.T) {
	t.Parallel()
	const azure = `
config:
  sources:
  - name: legacy
    file: {path: /registry}
  - name: machines
    azure: {credentials: {workloadIdentity: {}}, `
	const allow = `, allow: [{namespaces: ["*"], subscriptions: ["*"]}]}`
	const service = `services: [{host: a.example, ports: [{number: 80, protocol: HTTP}],
      resources: [/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/a]}]`
	for settings, granted := range map[string]bool{
		"kubernetes: {}" + allow:                            true,
		"kubernetes: {context: here}" + allow:               false,
		"kubernetes: {kubeconfig: /elsewhere.yaml}" + allow: false,
		service + "}": false,
	} {
		o := render(t, azure+settings)
		configuration(t, o)
		role, is := o["ClusterRole bridge-mesh-azure"].(*rbacv1.ClusterRole)
		if is != granted {
			t.Errorf("%s: rights are granted: %t", settings, is)
		}
		if !is {
			continue
		}
		if len(role.Rules) != 1 || !slices.Equal(role.Rules[0].Resources, []string{"azureresources"}) || !slices.Equal(role.Rules[0].Verbs, []string{"list"}) {
			t.Errorf("%s: the rules are %v", settings, role.Rules)
		}
		binding := get[rbacv1.ClusterRoleBinding](t, o, "ClusterRoleBinding bridge-mesh-azure")
		if binding.RoleRef.Name != role.Name || len(binding.Subjects) != 1 || binding.Subjects[0].Name != "bridge" || binding.Subjects[0].Namespace != "mesh" {
			t.Errorf("%s: the binding is %+v", settings, binding)
		}
	}
}
