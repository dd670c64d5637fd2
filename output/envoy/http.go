package envoy

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

const httpOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// httpVersion is what an Envoy that carries HTTP speaks with endpoints.
type httpVersion uint8

const (
	anyHTTP    httpVersion = iota // HTTP/1.1, Envoy's own choice
	http2                         // HTTP/2
	asIsSpoken                    // what the client speaks with Envoy
)

// httpVersionOf follows istiod, also for a protocol that Istio does not know: it
// is as if there were none.
func httpVersionOf(protocol string) httpVersion {
	switch protocol {
	case "HTTP2", "GRPC", "GRPC-WEB":
		return http2
	case "HTTP", "HTTP_PROXY", "HTTPS", "TLS", "TCP", "UDP", "MONGO", "REDIS", "MYSQL", "HBONE":
		return anyHTTP
	default:
		return asIsSpoken
	}
}

func (v httpVersion) options() map[string]*anypb.Any {
	options := &httpv3.HttpProtocolOptions{}
	switch v {
	case http2:
		options.UpstreamProtocolOptions = &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{
			ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
				ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
					Http2ProtocolOptions: &corev3.Http2ProtocolOptions{},
				},
			},
		}
	case asIsSpoken:
		options.UpstreamProtocolOptions = &httpv3.HttpProtocolOptions_UseDownstreamProtocolConfig{
			UseDownstreamProtocolConfig: &httpv3.HttpProtocolOptions_UseDownstreamHttpConfig{
				HttpProtocolOptions:  &corev3.Http1ProtocolOptions{},
				Http2ProtocolOptions: &corev3.Http2ProtocolOptions{},
			},
		}
	case anyHTTP:
		return nil
	}
	return map[string]*anypb.Any{httpOptions: packed(options)}
}
