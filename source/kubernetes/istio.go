package kubernetes

import (
	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/model"
)

type reading = istio.Reading

// recordKind is the kind of the records that are made of objects of a resource.
func recordKind(resource string) model.Kind {
	for _, k := range istioKinds {
		if k.Resource() == resource {
			return istio.RecordKind(string(k))
		}
	}
	return ""
}

// kindOf is the kind of the objects of a resource that may be left out.
func kindOf(resource string) string {
	for _, k := range istioKinds {
		if k.Resource() == resource {
			return string(k)
		}
	}
	return "EndpointSlice"
}

// istioKinds are those that are read.
var istioKinds = [...]istio.Kind{istio.ServiceEntry, istio.WorkloadEntry, istio.WorkloadGroup, istio.Sidecar}
