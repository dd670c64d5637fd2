package inspect

import "testing"

func TestTypesAreShownByTheirLastWord(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"type.googleapis.com/envoy.config.cluster.v3.Cluster": "Cluster",
		"networking.istio.io/v1/ServiceEntry":                 "ServiceEntry",
		"core/v1alpha1/MeshConfig":                            "core/v1alpha1/MeshConfig",
		"istio/networking/v1alpha3/synthetic/serviceentries":  "istio/networking/v1alpha3/synthetic/serviceentries",
	} {
		if got := shortType(name); got != want {
			t.Errorf("%s is shown as %q, want %q", name, got, want)
		}
	}
}
