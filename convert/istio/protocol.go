package istio

import "strings"

// protocol is the part of a connection by which hosts on a port can be distinguished.
type protocol uint8

const (
	unknownProtocol protocol = iota
	opaqueProtocol           // no part
	httpProtocol             // the host: HTTP has an authority
	tlsProtocol              // the host: TLS has a server name
)

const protocolNames = "HTTP, HTTPS, HTTP2, GRPC, GRPC-WEB, TLS, TCP, UDP, MONGO, REDIS, MYSQL"

// protocolOf returns Istio's interpretation of a port's protocol. An empty protocol means
// that the proxy detects it.
func protocolOf(name string) protocol {
	switch strings.ToLower(name) {
	case "http", "http_proxy", "http2", "grpc", "grpc-web":
		return httpProtocol
	case "https", "tls":
		return tlsProtocol
	case "", "tcp", "udp", "mongo", "redis", "mysql":
		return opaqueProtocol
	default:
		return unknownProtocol
	}
}
