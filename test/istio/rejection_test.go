package istio_test

import (
	"errors"
	"fmt"
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

// policy forbids some hosts and an address in a namespace.
const policy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    resourceRules:
    - {apiGroups: [networking.istio.io], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: [serviceentries]}
  validations:
  - expression: "!object.spec.hosts.exists(h, h.startsWith('forbidden'))"
    message: this host is forbidden here
  - expression: "!has(object.spec.endpoints) || !object.spec.endpoints.exists(e, e.address == '10.6.6.6')"
    message: this address is forbidden here
`

const policyBinding = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`

// probe is forbidden by the policy.
const probe = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: probe, namespace: %s}
spec: {hosts: [forbidden-probe.example], ports: [{number: 80, name: http}]}
`

// TestRejectedObjectHoldsUpNothingElse has a policy of the cluster reject one
// object. It is shown with the reason, and written when the policy is gone.
func TestRejectedObjectHoldsUpNothingElse(t *testing.T) {
	t.Parallel()
	api, registry := connect(t, shared), startRegistry(t)
	b := api.Bridge(registry, "refusal")
	api.Apply(policies, fmt.Sprintf(policy, b.namespace))
	api.Apply(policyBindings, fmt.Sprintf(policyBinding, b.namespace))
	await(t, "the policy to be in force", func() error {
		if apply(t.Context(), api.client, cluster.ServiceEntries, fmt.Sprintf(probe, b.namespace)) == nil {
			return errors.New("what it forbids is admitted")
		}
		return nil
	})
	registry.Add("forbidden", "10.0.0.1:80")
	registry.AddMany("many", 20)
	i := serve(t, api, b)
	i.AwaitRejection(b.host("forbidden"), "this host is forbidden here")
	registry.Add("many-1", "10.9.9.9:80")
	registry.Drop("many-2")
	api.AwaitMirrorBut(b, "forbidden")
	registry.Add("many-3", "10.6.6.6:80")
	i.AwaitRejection(b.host("many-3"), "this address is forbidden here")
	api.awaitEvents(b.namespace, b.host("many-3"), "Warning WriteRejected x1: ServiceEntry "+b.namespace+"/"+b.host("many-3"))

	if err := api.client.Delete(t.Context(), policyBindings, "", b.namespace); err != nil {
		t.Fatal(err)
	}
	api.Settle(b)
	api.awaitEvents(b.namespace, b.host("many-3"), "Normal UpToDate x1: ", "Warning WriteRejected x1: ")
	api.MustHaveDeletedAtMost(b.namespace, "many-2", "probe")
}

// TestMissingNamespaceHoldsUpNothingElse registers services for two namespaces,
// of which one comes later.
func TestMissingNamespaceHoldsUpNothingElse(t *testing.T) {
	t.Parallel()
	api, registry := connect(t, shared), startRegistry(t)
	registry.AddMany("many", 5)
	late := startRegistry(t)
	late.AddMany("many", 5)
	b := api.Bridge(registry, "there")
	b.late = &bridge{registry: late, namespace: b.namespace + "-late", instance: b.namespace}
	i := serve(t, api, b)
	api.AwaitMirror(b)
	i.AwaitRejection(b.late.host("many-0"), "not found")
	registry.Add("many-1", "10.9.9.9:80")
	api.Settle(b)

	api.Namespace(b.late.namespace)
	api.Settle(*b.late)
	api.MustHaveDeleted(b.namespace)
}
