package catalog_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// Whoever is said to be in a namespace that is named like one of the words sees
// what is exported to everybody.
func TestWordsOfExportsAreNoNamespaces(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		to, namespace, home string
		want                bool
	}{
		{"*", "", "shop", true},
		{"*", "*", "shop", true},
		{".", "shop", "shop", true},
		{".", ".", "shop", false},
		{".", "", "shop", false},
		{"~", "~", "shop", false},
		{"~", "shop", "shop", false},
		{"shop", "shop", "bank", true},
		{"shop", "*", "bank", false},
		{"shop", "", "bank", false},
	} {
		d := catalog.Definition{ExportTo: model.ListOf(test.to)}
		if got := d.VisibleTo(test.namespace, test.home); got != test.want {
			t.Errorf("exported by %s to %q, seen from %q: %t", test.home, test.to, test.namespace, got)
		}
	}
}
