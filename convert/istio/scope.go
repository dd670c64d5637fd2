package istio

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
	"github.com/isthmus-mesh/isthmus/model"
)

// everything is the egress hosts of a Sidecar without egress.
const everything = "*/*"

// scopeOf converts a valid Sidecar into a scope. Only the hosts of its listeners take
// effect: the listeners themselves concern only the proxy.
func scopeOf(meta model.Meta, sidecar *networking.Sidecar, spec *yamlpos.Node) model.Scope {
	var hosts []string
	for _, listener := range sidecar.GetEgress() {
		hosts = append(hosts, listener.GetHosts()...)
	}
	if len(sidecar.GetEgress()) == 0 {
		hosts = []string{everything}
	}
	return model.Scope{
		Meta:             meta,
		WorkloadSelector: model.MapOf(sidecar.GetWorkloadSelector().GetLabels()),
		Hosts:            model.ListOf(hosts...),
		Content:          string(mustJSON(plain(spec))),
	}
}
