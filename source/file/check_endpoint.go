package file

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

// checkEndpoint checks what holds for a WorkloadEntry that is an endpoint:
// anywhere but in the template of a WorkloadGroup.
func checkEndpoint(node *yamlpos.Node, entry *networking.WorkloadEntry, at trail, v *verdict) {
	checkWorkload(node, entry, at, v)
	address := entry.GetAddress()
	switch {
	case address == "" && entry.GetNetwork() == "":
		v.add(at.field("address"), "missing: write an IP address, a DNS name or unix:///path, or a network")
	case address != "" && !isUnix(address) && !isIP(address) && checkDomain(address) != nil:
		v.add(at.field("address"), "%q is not an IP address, DNS name or unix:///path: correct it", address)
	}
	checkLabels(entry.GetLabels(), at.field("labels"), v)
}

// checkWorkload checks what holds for a WorkloadEntry wherever it stands.
func checkWorkload(node *yamlpos.Node, entry *networking.WorkloadEntry, at trail, v *verdict) {
	if address := entry.GetAddress(); isUnix(address) {
		checkSocket(address, at.field("address"), v)
		if present(node.Get("ports")) {
			v.add(at.field("ports"), "a unix socket has no ports: remove them")
		}
	}
	ports := at.field("ports")
	for name := range entry.GetPorts() {
		if !isLabel(name) || len(name) > 62 { // one less than the names of services' ports may have
			v.add(ports.field(name), "%q cannot be a port's name: use letters, digits and hyphens, at most 62", name)
		}
	}
}

// checkSocket checks what begins as the address of a unix socket does.
func checkSocket(address string, at trail, v *verdict) {
	switch socket := strings.TrimPrefix(address, unixPrefix); {
	case !strings.HasPrefix(socket, "/") && !strings.HasPrefix(socket, "@"):
		v.add(at, "%q is not a socket: write an absolute path, unix:///path, or unix://@name", address)
	case strings.HasSuffix(socket, "/"):
		v.add(at, "%q is a directory: write the path of a socket", address)
	}
}

// checkLabels checks the labels of an endpoint, of which Istio asks a little
// less than Kubernetes does of those in metadata.
func checkLabels(labels map[string]string, at trail, v *verdict) {
	for key, value := range labels {
		if err := checkEndpointLabelKey(key); err != nil {
			v.add(at.field(key), "%v", err)
		}
		if err := checkEndpointLabelValue(value); err != nil {
			v.add(at.field(key), "%v", err)
		}
	}
}
