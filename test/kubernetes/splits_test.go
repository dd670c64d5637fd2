package kubernetes_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/isthmus-mesh/isthmus/source"
)

var trafficSplits = schema.GroupVersionResource{Group: "split.smi-spec.io", Version: "v1alpha1", Resource: "trafficsplits"}

// splitDefinition is a definition without conversion, in which an object has the weights of the
// oldest version in each.
const splitDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: trafficsplits.split.smi-spec.io}
spec:
  group: split.smi-spec.io
  scope: Namespaced
  names: {kind: TrafficSplit, listKind: TrafficSplitList, plural: trafficsplits, singular: trafficsplit}
  versions:
  - &version
    name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - {<<: *version, name: v1alpha2, storage: false}
`

const canarySplit = `
apiVersion: split.smi-spec.io/v1alpha1
kind: TrafficSplit
metadata: {namespace: splits, name: canary}
spec: {service: web, backends: [{service: web-v1, weight: 500m}, {service: web-v2, weight: "1"}]}
`

const mayReadSplits = `
- apiGroups: [split.smi-spec.io]
  resources: [trafficsplits]
  verbs: [list, watch]
`

// TrafficSplits are optional: without their definition nothing is missing, with or without the
// right to read them. They are read once they are defined, and go with the definition.
func TestTrafficSplitsComeAndGoWithTheirDefinition(t *testing.T) {
	t.Parallel()
	c := own(t)
	client := connect(t, c)
	apply := func(kind schema.GroupVersionResource, manifest string, args ...any) {
		t.Helper()
		if err := client.Apply(t.Context(), kind, object(t, manifest, args...)); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Namespace(t.Context(), "splits"); err != nil {
		t.Fatal(err)
	}
	apply(clusterRoles, clusterRole, mayReadIstio)
	apply(bindings, roleBinding)
	m := mirror(t, kubeconfig(t, c.API, "reader"))
	m.awaitState(source.StateLive)
	if rejected := m.supervisor.Status().Rejected; len(rejected) > 0 {
		t.Errorf("without a definition the status has %v", rejected)
	}

	apply(definitions, "%s", splitDefinition)
	m.awaitRejected("trafficsplits", "allow list and watch, or set smi: false")
	apply(clusterRoles, clusterRole, mayReadIstio+mayReadSplits)
	await(t, "the object can be created", func() error { return client.Apply(t.Context(), trafficSplits, object(t, canarySplit)) })
	await(t, "the split", func() error {
		if split := m.records("splits")["Split canary"]; !strings.Contains(split, "500") || !strings.Contains(split, "1000") {
			return fmt.Errorf("there is %v", m.records("splits"))
		}
		return nil
	})
	m.awaitRejected("trafficsplits", "")

	if err := client.Delete(t.Context(), definitions, "", "trafficsplits.split.smi-spec.io"); err != nil {
		t.Fatal(err)
	}
	await(t, "the end of the split", func() error {
		if split, there := m.records("splits")["Split canary"]; there {
			return fmt.Errorf("there is %s", split)
		}
		return nil
	})
	m.awaitRejected("trafficsplits", "")
	m.awaitState(source.StateLive)
}
