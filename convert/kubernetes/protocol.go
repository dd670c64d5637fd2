package kubernetes

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// protocolOf returns the protocol of a port in the words of ServiceEntry; empty if none is
// declared and the proxy has to detect it. The appProtocol declares it, otherwise the name
// up to the first "-". An unknown appProtocol declares nothing, and the name is not used:
// its author meant another protocol.
func protocolOf(port *corev1.ServicePort) string {
	switch port.Protocol {
	case corev1.ProtocolUDP, corev1.ProtocolSCTP:
		return "UDP" // neither gets a listener
	case corev1.ProtocolTCP:
	}
	if port.AppProtocol != nil {
		return byAppProtocol(strings.ToLower(*port.AppProtocol))
	}
	return byName(strings.ToLower(port.Name))
}

// byAppProtocol accepts the names of Kubernetes' own standard beside those of ports.
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

// grpcWeb itself contains a "-".
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
