package kubernetes

import (
	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/model"
)

// recordKind returns the kind of the records that are made of objects of a resource.
func recordKind(resource string) model.Kind {
	for _, k := range istioKinds {
		if k.Resource() == resource {
			return istio.RecordKind(string(k))
		}
	}
	return ""
}

// kindOf returns the kind of a resource with objects that may be left out.
func kindOf(resource string) string {
	for _, k := range istioKinds {
		if k.Resource() == resource {
			return string(k)
		}
	}
	return "EndpointSlice"
}

// istioKinds are the kinds of Istio that are read.
var istioKinds = [...]istio.Kind{istio.ServiceEntry, istio.WorkloadEntry, istio.WorkloadGroup, istio.Sidecar}
