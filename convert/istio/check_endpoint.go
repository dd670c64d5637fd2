package istio

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

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
	case address != "" && !isUnix(address) && !isIP(address) && checkDomain(address) != nil:
		p.add(at.field("address"), "%q is not an IP address, DNS name or unix:///path: correct it", address)
	}
	checkLabels(entry.GetLabels(), at.field("labels"), p)
}

// checkWorkload checks the rules of any WorkloadEntry.
func checkWorkload(node *yamlpos.Node, entry *networking.WorkloadEntry, at trail, p *problems) {
	if address := entry.GetAddress(); isUnix(address) {
		checkSocket(address, at.field("address"), p)
		if present(node.Get("ports")) {
			p.add(at.field("ports"), "a unix socket has no ports: remove them")
		}
	}
	ports := at.field("ports")
	for name := range entry.GetPorts() {
		if !isLabel(name) || len(name) > 62 { // at most one character less than the name of a service's port
			p.add(ports.field(name), "%q cannot be a port's name: use letters, digits and hyphens, at most 62", name)
		}
	}
}

// checkSocket checks an address with the prefix of a unix socket.
func checkSocket(address string, at trail, p *problems) {
	switch socket := strings.TrimPrefix(address, unixPrefix); {
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
		if err := checkEndpointLabelKey(key); err != nil {
			p.add(at.field(key), "%v", err)
		}
		if err := checkEndpointLabelValue(value); err != nil {
			p.add(at.field(key), "%v", err)
		}
	}
}
