package kubernetes

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// protocolOf is what the bytes of a port are, in the words of ServiceEntry; empty if
// nothing says so and the proxy has to find out by looking. A port says it by its
// appProtocol, else by its name up to the first "-". An appProtocol that is not known
// says nothing, and the name is not asked: whoever wrote it meant something else.
func protocolOf(port *corev1.ServicePort) string {
	switch port.Protocol {
	case corev1.ProtocolUDP, corev1.ProtocolSCTP:
		return "UDP" // of either there is no listener
	case corev1.ProtocolTCP:
	}
	if port.AppProtocol != nil {
		return byAppProtocol(strings.ToLower(*port.AppProtocol))
	}
	return byName(strings.ToLower(port.Name))
}

// byAppProtocol takes the names of Kubernetes' own standard beside those of ports.
func byAppProtocol(name string) string {
	switch name {
	case "kubernetes.io/h2c":
		return "HTTP2"
	case "kubernetes.io/ws":
		return "HTTP"
	case "kubernetes.io/wss":
		return "HTTPS"
	}
	return known(name)
}

// grpcWeb has a "-" itself.
const grpcWeb = "grpc-web"

func byName(name string) string {
	if name == grpcWeb || strings.HasPrefix(name, grpcWeb+"-") {
		return known(grpcWeb)
	}
	prefix, _, _ := strings.Cut(name, "-")
	return known(prefix)
}

func known(name string) string {
	switch name {
	case "http", "http2", "grpc", grpcWeb, "https", "tls", "tcp", "mongo", "mysql", "redis":
		return strings.ToUpper(name)
	default:
		return ""
	}
}
