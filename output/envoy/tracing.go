package envoy

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tracev3 "github.com/envoyproxy/go-control-plane/envoy/config/trace/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	environmentv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/tracers/opentelemetry/resource_detectors/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
)

// tracing is what requests in the listeners of a view are reported by; nil for nothing.
// An Envoy takes it before it has the cluster of the collector, and drops spans until then.
func (v View) tracing() *hcmv3.HttpConnectionManager_Tracing {
	said := v.policyOf("").Tracing
	if said == nil {
		return nil
	}
	collector := ClusterName(said.OpenTelemetry.Host, uint32(said.OpenTelemetry.Port)) //nolint:gosec // it is validated
	provider := &tracev3.OpenTelemetryConfig{
		GrpcService: &corev3.GrpcService{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{
			EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: collector, Authority: said.OpenTelemetry.Host},
		}},
		// The name of the service is that in the environment of the Envoy, as for any
		// other program that reports spans.
		ResourceDetectors: []*corev3.TypedExtensionConfig{{
			Name:        "envoy.tracers.opentelemetry.resource_detectors.environment",
			TypedConfig: packed(&environmentv3.EnvironmentResourceDetectorConfig{}),
		}},
	}
	return &hcmv3.HttpConnectionManager_Tracing{
		ClientSampling: &typev3.Percent{Value: 100}, OverallSampling: &typev3.Percent{Value: 100},
		RandomSampling: &typev3.Percent{Value: said.Sampling},
		Provider: &tracev3.Tracing_Http{
			Name: "envoy.tracers.opentelemetry", ConfigType: &tracev3.Tracing_Http_TypedConfig{TypedConfig: packed(provider)},
		},
	}
}
