package istio

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

// checkGroup checks a WorkloadGroup. Its template is not an endpoint yet: the
// address is filled in for each workload.
func checkGroup(spec *yamlpos.Node, group *networking.WorkloadGroup, p *problems) {
	at := top("spec")
	checkWorkload(spec.Get("template"), group.GetTemplate(), at.field("template"), p)
	metadata := at.field("metadata")
	checkLabels(group.GetMetadata().GetLabels(), metadata.field("labels"), p)
	if group.GetProbe() != nil {
		checkProbe(group.GetProbe(), at.field("probe"), p)
	}
}

func checkProbe(probe *networking.ReadinessProbe, at trail, p *problems) {
	switch method := probe.GetHealthCheckMethod().(type) {
	case nil:
		p.add(at, "nothing is probed: write httpGet, tcpSocket or exec")
	case *networking.ReadinessProbe_Grpc:
		p.add(at.field("grpc"), "Istio does not admit gRPC probes yet: write httpGet, tcpSocket or exec")
	case *networking.ReadinessProbe_HttpGet:
		checkHTTPProbe(method.HttpGet, at.field("httpGet"), p)
	}
}

func checkHTTPProbe(get *networking.HTTPHealthCheckConfig, at trail, p *problems) {
	switch get.GetScheme() {
	case "", "HTTP", "HTTPS":
	default:
		p.add(at.field("scheme"), "%q is not a scheme to probe with: use HTTP or HTTPS", get.GetScheme())
	}
	headers := at.field("httpHeaders")
	for i, header := range get.GetHttpHeaders() {
		if !isHeaderName(header.GetName()) {
			item := headers.item(i)
			p.add(item.field("name"), "%q cannot be a header's name: use letters, digits and hyphens", header.GetName())
		}
	}
}

func isHeaderName(s string) bool {
	for i := range len(s) {
		if !isAlphanumeric(s[i]) && s[i] != '-' {
			return false
		}
	}
	return s != ""
}
