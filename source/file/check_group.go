package file

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

// checkGroup checks a WorkloadGroup. Its template is not an endpoint yet: the
// address is filled in for each workload.
func checkGroup(spec *yamlpos.Node, group *networking.WorkloadGroup, v *verdict) {
	at := trail{name: "spec", index: -1}
	checkWorkload(spec.Get("template"), group.GetTemplate(), at.field("template"), v)
	metadata := at.field("metadata")
	checkLabels(group.GetMetadata().GetLabels(), metadata.field("labels"), v)
	if group.GetProbe() != nil {
		checkProbe(group.GetProbe(), at.field("probe"), v)
	}
}

func checkProbe(probe *networking.ReadinessProbe, at trail, v *verdict) {
	switch method := probe.GetHealthCheckMethod().(type) {
	case nil:
		v.add(at, "nothing is probed: write httpGet, tcpSocket or exec")
	case *networking.ReadinessProbe_Grpc:
		v.add(at.field("grpc"), "Istio does not admit gRPC probes yet: write httpGet, tcpSocket or exec")
	case *networking.ReadinessProbe_HttpGet:
		checkHTTPProbe(method.HttpGet, at.field("httpGet"), v)
	}
}

func checkHTTPProbe(get *networking.HTTPHealthCheckConfig, at trail, v *verdict) {
	switch get.GetScheme() {
	case "", "HTTP", "HTTPS":
	default:
		v.add(at.field("scheme"), "%q is not a scheme to probe with: use HTTP or HTTPS", get.GetScheme())
	}
	headers := at.field("httpHeaders")
	for i, header := range get.GetHttpHeaders() {
		if !isHeaderName(header.GetName()) {
			item := headers.item(i)
			v.add(item.field("name"), "%q cannot be a header's name: use letters, digits and hyphens", header.GetName())
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
