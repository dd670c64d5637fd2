package names

import "strings"

// Protocol is the part of a connection by which hosts on a port can be distinguished.
type Protocol uint8

// The protocols of ports.
const (
	UnknownProtocol Protocol = iota
	OpaqueProtocol           // no part
	HTTPProtocol             // the host: HTTP has an authority
	TLSProtocol              // the host: TLS has a server name
)

// Protocols lists the protocols of ports, for error texts.
const Protocols = "HTTP, HTTPS, HTTP2, GRPC, GRPC-WEB, TLS, TCP, UDP, MONGO, REDIS, MYSQL"

// ProtocolOf returns Istio's interpretation of a port's protocol. An empty protocol means
// that the proxy detects it.
func ProtocolOf(name string) Protocol {
	switch strings.ToLower(name) {
	case "http", "http_proxy", "http2", "grpc", "grpc-web":
		return HTTPProtocol
	case "https", "tls":
		return TLSProtocol
	case "", "tcp", "udp", "mongo", "redis", "mysql":
		return OpaqueProtocol
	default:
		return UnknownProtocol
	}
}
