package envoy

import "github.com/isthmus-mesh/isthmus/output/envoy/names"

// unknownCluster is the cluster of connections that belong to no service.
func unknownCluster(registryOnly bool) string {
	if registryOnly {
		return names.BlackHole
	}
	return names.Passthrough
}
