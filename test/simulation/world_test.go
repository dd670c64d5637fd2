package simulation

import (
	"testing"

	"istio.io/api/mesh/v1alpha1"
	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pilot/pkg/networking/core"
	"istio.io/istio/pilot/pkg/simulation"
	"istio.io/istio/pilot/test/xdstest"
	"istio.io/istio/pkg/config/mesh"
)

// world is what both sides are given.
type world struct {
	entries  string // ServiceEntries
	workload workload
	registry bool // what belongs to no service is blocked
}

// app is the workload of nearly all tests.
var app = workload{namespace: "default", addresses: []string{"10.9.9.9"}}

// plaintext has Istio's sidecars take inbound connections as those of Isthmus do, which
// hands out no certificates.
const plaintext = `
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: default, namespace: istio-system}
spec: {mtls: {mode: DISABLE}}
`

// istio is a sidecar with what Istio's generator makes of a world.
func (w world) istio(t *testing.T) *simulation.Simulation {
	t.Helper()
	policy := mesh.DefaultMeshConfig()
	if w.registry {
		policy.OutboundTrafficPolicy.Mode = v1alpha1.MeshConfig_OutboundTrafficPolicy_REGISTRY_ONLY
	}
	generator := core.NewConfigGenTest(t, core.TestOptions{ConfigString: w.entries + "\n---" + plaintext, MeshConfig: policy})
	return simulation.NewSimulationFromConfigGen(t, generator, generator.SetupProxy(&model.Proxy{
		ConfigNamespace: w.workload.namespace, IPAddresses: w.workload.addresses,
		Metadata: &model.NodeMetadata{IstioVersion: "1.30.0"},
	}))
}

// isthmus is a sidecar with what a real Isthmus sends for a world. Istio's own checks
// find nothing wrong with it.
func (w world) isthmus(t *testing.T) *simulation.Simulation {
	t.Helper()
	outbound := "allow"
	if w.registry {
		outbound = "registry"
	}
	sim := emptySimulation(t)
	c := configurationFrom(t, serve(t, t.TempDir(), w.entries, outbound), w.workload)
	sim.Listeners, sim.Clusters, sim.Routes = c.listeners, c.clusters, c.routes
	xdstest.ValidateClusters(t, sim.Clusters)
	for _, l := range sim.Listeners {
		if l.GetName() != model.VirtualInboundListenerName { // of which Istio wants more than Envoy
			xdstest.ValidateListener(t, l)
		}
	}
	return sim
}

// emptySimulation is one whose configuration is still to be set. There is no other way
// to make one than from Istio's generator.
func emptySimulation(t *testing.T) *simulation.Simulation {
	t.Helper()
	generator := core.NewConfigGenTest(t, core.TestOptions{})
	return simulation.NewSimulationFromConfigGen(t, generator, generator.SetupProxy(nil))
}
