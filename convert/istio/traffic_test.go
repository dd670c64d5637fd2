package istio_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/model"
)

// A ServiceEntry says by the annotation of Istio which endpoints come first.
func TestDistributionOfTrafficIsRead(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]model.Preference{
		"PreferClose": model.PreferSameZone, "prefersamezone": model.PreferSameZone, "PreferSameNode": model.PreferSameNode, "Any": "",
	} {
		text := `{"apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry", "metadata": {"name": "a", "annotations": {"networking.istio.io/traffic-distribution": "` + word + `"}},
			"spec": {"hosts": ["a.example"], "ports": [{"number": 80, "name": "http", "protocol": "HTTP"}], "resolution": "STATIC", "endpoints": [{"address": "10.0.0.1"}]}}`
		read := istio.FromJSON([]byte(text), istio.DefaultDomain)
		service, ok := read.Listed("").Record.Spec.(model.Service)
		if !ok || service.Traffic != (model.Traffic{Prefer: want}) {
			t.Errorf("%s: %+v", word, service.Traffic)
		}
	}
}
