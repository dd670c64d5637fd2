package explain

import (
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
)

// Named returns the resources that a kind of client may have of one service alone, by port.
// Listeners and routes of Envoys are of many services, and not among them.
func Named(s *catalog.Service, kind string) (list []output.ResourceName) {
	for _, port := range s.Ports {
		form := reach.FormFor(kind, s, port)
		if form == reach.NoForm {
			continue
		}
		cluster := names.Cluster(s.Key.Host, port.Number)
		if reach.IsGRPC(kind) {
			list = append(list,
				output.ResourceName{Type: wire.ListenerURL, Name: names.Listener(s.Key.Host, port.Number)},
				output.ResourceName{Type: wire.RouteURL, Name: cluster})
		}
		list = append(list, output.ResourceName{Type: wire.ClusterURL, Name: cluster})
		if form == reach.EDS {
			list = append(list, output.ResourceName{Type: wire.EndpointURL, Name: cluster})
		}
	}
	return list
}
