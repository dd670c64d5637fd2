package wire

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

const httpOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// HTTPVersion is the version of HTTP between Envoys and endpoints.
type HTTPVersion uint8

// The versions.
const (
	AnyHTTP    HTTPVersion = iota // HTTP/1.1, Envoy's own choice
	HTTP2                         // HTTP/2
	Downstream                    // the version of the downstream request
)

// HTTPVersionOf returns the version for a protocol, as istiod does. It treats an unknown
// protocol like a missing one.
func HTTPVersionOf(protocol string) HTTPVersion {
	switch protocol {
	case "HTTP2", "GRPC", "GRPC-WEB":
		return HTTP2
	case "HTTP", "HTTP_PROXY", "HTTPS", "TLS", "TCP", "UDP", "MONGO", "REDIS", "MYSQL", "HBONE":
		return AnyHTTP
	default:
		return Downstream
	}
}

func (v HTTPVersion) options() map[string]*anypb.Any {
	options := &httpv3.HttpProtocolOptions{}
	switch v {
	case HTTP2:
		options.UpstreamProtocolOptions = &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{
			ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
				ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
					Http2ProtocolOptions: &corev3.Http2ProtocolOptions{},
				},
			},
		}
	case Downstream:
		options.UpstreamProtocolOptions = &httpv3.HttpProtocolOptions_UseDownstreamProtocolConfig{
			UseDownstreamProtocolConfig: &httpv3.HttpProtocolOptions_UseDownstreamHttpConfig{
				HttpProtocolOptions:  &corev3.Http1ProtocolOptions{},
				Http2ProtocolOptions: &corev3.Http2ProtocolOptions{},
			},
		}
	case AnyHTTP:
		return nil
	}
	return map[string]*anypb.Any{httpOptions: packed(options)}
}
