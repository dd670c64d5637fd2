package reach

import (
	"cmp"

	"github.com/isthmus-mesh/isthmus/catalog"
)

// CompareKeys orders services by host, then by namespace.
func CompareKeys(a, b catalog.ServiceKey) int {
	return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Namespace, b.Namespace))
}
