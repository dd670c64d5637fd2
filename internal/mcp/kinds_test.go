package mcp_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
)

func TestEachNameLeadsToItsKind(t *testing.T) {
	seen := map[string]string{}
	for _, k := range mcp.Kinds() {
		for _, name := range []string{k.Name, k.Group + "/" + k.Name, k.Collection} {
			if other, taken := seen[name]; taken && name != "" {
				t.Errorf("%s names %s and %s", name, other, k.URL())
			}
			seen[name] = k.URL()
		}
		if found, ok := mcp.ByURL(k.Group + "/v1other/" + k.Name); !ok || found != k {
			t.Errorf("%s is found as %v by another version", k.URL(), found)
		}
		if found, ok := mcp.ByCollection(k.Collection); ok != (k.Collection != "") || ok && found != k {
			t.Errorf("%s is found as %v by its collection", k.URL(), found)
		}
		if found, ok := mcp.ByName(k.Name); !ok || found != k {
			t.Errorf("%s is found as %v by its name", k.URL(), found)
		}
	}
	if k, ok := mcp.ByCollection(mcp.Synthetic); !ok || k.Name != "ServiceEntry" {
		t.Errorf("the synthetic collection is of %v", k)
	}
	for _, name := range []string{"", "networking.istio.io", "networking.istio.io/ServiceEntry", "networking.istio.io//ServiceEntry", "other/v1/ServiceEntry"} {
		if k, ok := mcp.ByURL(name); ok {
			t.Errorf("%q is taken for %v", name, k)
		}
	}
}
