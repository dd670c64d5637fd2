package istio

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/convert/istio/names"
	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

// checkEndpoint checks the rules of a WorkloadEntry that is an endpoint: anywhere but in
// the template of a WorkloadGroup.
func checkEndpoint(node *yamlpos.Node, entry *networking.WorkloadEntry, at trail, p *problems) {
	checkWorkload(node, entry, at, p)
	address := entry.GetAddress()
	switch {
	case address == "" && entry.GetNetwork() == "":
		p.add(at.field("address"), "missing: write an IP address, a DNS name or unix:///path, or a network")
	case address != "" && !names.IsUnix(address) && !names.IsIP(address) && names.CheckDomain(address) != nil:
		p.add(at.field("address"), "%q is not an IP address, DNS name or unix:///path: correct it", address)
	}
	checkLabels(entry.GetLabels(), at.field("labels"), p)
}

// checkWorkload checks the rules of any WorkloadEntry.
func checkWorkload(node *yamlpos.Node, entry *networking.WorkloadEntry, at trail, p *problems) {
	if address := entry.GetAddress(); names.IsUnix(address) {
		checkSocket(address, at.field("address"), p)
		if present(node.Get("ports")) {
			p.add(at.field("ports"), "a unix socket has no ports: remove them")
		}
	}
	ports := at.field("ports")
	for name := range entry.GetPorts() {
		if !names.IsLabel(name) || len(name) > 62 { // at most one character less than the name of a service's port
			p.add(ports.field(name), "%q cannot be a port's name: use letters, digits and hyphens, at most 62", name)
		}
	}
}

// checkSocket checks an address with the prefix of a unix socket.
func checkSocket(address string, at trail, p *problems) {
	switch socket := strings.TrimPrefix(address, names.UnixPrefix); {
	case !strings.HasPrefix(socket, "/") && !strings.HasPrefix(socket, "@"):
		p.add(at, "%q is not a socket: write an absolute path, unix:///path, or unix://@name", address)
	case strings.HasSuffix(socket, "/"):
		p.add(at, "%q is a directory: write the path of a socket", address)
	}
}

// checkLabels checks the labels of an endpoint. Istio's rules for them are a little weaker
// than Kubernetes' rules for the labels in metadata.
func checkLabels(labels map[string]string, at trail, p *problems) {
	for key, value := range labels {
		if err := names.CheckEndpointLabelKey(key); err != nil {
			p.add(at.field(key), "%v", err)
		}
		if err := names.CheckEndpointLabelValue(value); err != nil {
			p.add(at.field(key), "%v", err)
		}
	}
}

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
		if !names.IsAlphanumeric(s[i]) && s[i] != '-' {
			return false
		}
	}
	return s != ""
}
