package istio_test

import (
	"path"
	"testing"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/model"
)

func TestEachKindIsFoundByEachOfItsNames(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range istio.Definitions() {
		for _, name := range []string{d.Name, d.URL(), d.Collection} {
			if name != "" && seen[name] {
				t.Errorf("%s stands for two kinds", name)
			}
			seen[name] = true
		}
		if found, ok := istio.ByURL(d.Group + "/v1other/" + d.Name); ok != (d.URL() != "") || ok && found != d {
			t.Errorf("%s is %v under another version", d.URL(), found)
		}
		if found, ok := istio.ByCollection(d.Collection); ok != (d.Collection != "") || ok && found != d {
			t.Errorf("collection %q is %v", d.Collection, found)
		}
		if found, ok := istio.ByName(d.Name); !ok || found != d {
			t.Errorf("%s is %v by its name", d.Name, found)
		}
		if d.Collection != "" && path.Base(d.Collection) != d.Resource() {
			t.Errorf("collection %s ends in %s for an API server", d.Collection, d.Resource())
		}
	}
	if d, ok := istio.ByCollection(mcp.Synthetic); !ok || !d.MakesServices() {
		t.Errorf("%s is %v", mcp.Synthetic, d)
	}
	for _, name := range []string{"", "ServiceEntry", "networking.istio.io/v1", "networking.istio.io//ServiceEntry", "/v1/ServiceEntry", "networking.istio.io/v1/Nothing"} {
		if d, ok := istio.ByURL(name); ok {
			t.Errorf("%q is %v", name, d)
		}
	}
}

// No protocol of Istio carries the kinds of SMI, of which an API server has one resource.
func TestKindsOfSMIAreOfNoProtocol(t *testing.T) {
	d, known := istio.ByName("TrafficSplit")
	if !known || !d.IsSMI() || d.Resource() != "trafficsplits" || d.URL() != "" || d.Collection != "" || d.Versions()[0] != d.Version {
		t.Errorf("TrafficSplit is %+v", d)
	}
}

// A row is read or carried, and the kind of its records says so everywhere else.
func TestOnlyReadKindsBecomeRecordsThatAreUnderstood(t *testing.T) {
	for _, d := range istio.Definitions() {
		if !d.IsRead() && (d.RecordKind().Understood() || d.RecordKind() != model.Kind(d.Name)) {
			t.Errorf("%s is carried as records of kind %s", d.Name, d.RecordKind())
		}
	}
}
