package istio_test

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// admission is a resource by which a cluster says what it admits.
func admission(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}
}

var (
	policies       = admission("validatingadmissionpolicies")
	policyBindings = admission("validatingadmissionpolicybindings")
)

// policy forbids some hosts in a namespace.
const policy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-forbidden-hosts}
spec:
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: refusal}}
    resourceRules:
    - {apiGroups: [networking.istio.io], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: [serviceentries]}
  validations:
  - expression: "!object.spec.hosts.exists(h, h.startsWith('forbidden'))"
    message: this host is forbidden here
`

const policyBinding = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-forbidden-hosts}
spec: {policyName: no-forbidden-hosts, validationActions: [Deny]}
`

// probe is forbidden by the policy.
const probe = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: probe, namespace: refusal}
spec: {hosts: [forbidden-probe.example], ports: [{number: 80, name: http}]}
`

// TestRefusedObjectHoldsUpNothingElse has a policy of the cluster refuse one
// object. It is shown with the reason, and written when the policy is gone.
func TestRefusedObjectHoldsUpNothingElse(t *testing.T) {
	t.Parallel()
	api, registry := connect(t, shared), startRegistry(t)
	api.Namespace("refusal")
	api.Apply(policies, policy)
	api.Apply(policyBindings, policyBinding)
	await(t, "the policy to be in force", func() error {
		if apply(t.Context(), api.client, cluster.ServiceEntries, probe) == nil {
			return errors.New("what it forbids is admitted")
		}
		return nil
	})
	registry.Add("forbidden", "10.0.0.1:80")
	registry.AddMany("many", 20)
	b := bridge{registry: registry, namespace: "refusal"}
	i := serve(t, api, b)
	i.AwaitRefusal("refusal/forbidden.refusal.example", "this host is forbidden here")
	registry.Add("many-1", "10.9.9.9:80")
	registry.Drop("many-2")
	api.AwaitMirrorBut(b, "forbidden")

	if err := api.client.Delete(t.Context(), policyBindings, "", "no-forbidden-hosts"); err != nil {
		t.Fatal(err)
	}
	api.Settle(b)
	api.MustHaveDeletedAtMost("refusal", "many-2", "probe")
}

// TestMissingNamespaceHoldsUpNothingElse registers services for two namespaces,
// of which one comes later.
func TestMissingNamespaceHoldsUpNothingElse(t *testing.T) {
	t.Parallel()
	api, registry := connect(t, shared), startRegistry(t)
	api.Namespace("there")
	registry.AddMany("many", 5)
	late := startRegistry(t)
	late.AddMany("many", 5)
	b := bridge{registry: registry, namespace: "there", late: &bridge{registry: late, namespace: "late"}}
	i := serve(t, api, b)
	api.AwaitMirror(b)
	i.AwaitRefusal("late/many-0.late.example", "not found")
	registry.Add("many-1", "10.9.9.9:80")
	api.Settle(b)

	api.Namespace("late")
	api.Settle(bridge{registry: late, namespace: "late", instance: "there"})
	api.MustHaveDeleted("there")
}
