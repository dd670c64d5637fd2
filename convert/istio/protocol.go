package istio

import "strings"

// protocol says what can be distinguished from a connection of a port's protocol.
type protocol uint8

const (
	unknownProtocol protocol = iota
	opaqueProtocol           // nothing
	httpProtocol             // the host: HTTP has an authority
	tlsProtocol              // the host: TLS has a server name
)

const protocolNames = "HTTP, HTTPS, HTTP2, GRPC, GRPC-WEB, TLS, TCP, UDP, MONGO, REDIS, MYSQL"

// protocolOf tells what Istio takes a port's protocol for. None at all means
// that the proxy finds out by looking.
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
