package wire

import (
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tracev3 "github.com/envoyproxy/go-control-plane/envoy/config/trace/v3"
	filev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	environmentv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/tracers/opentelemetry/resource_detectors/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// accessLogText is Istio's default text format.
const accessLogText = `[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE% %RESPONSE_FLAGS% ` +
	`%RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% "%UPSTREAM_TRANSPORT_FAILURE_REASON%" %BYTES_RECEIVED% %BYTES_SENT% ` +
	`%DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "%REQ(X-FORWARDED-FOR)%" "%REQ(USER-AGENT)%" "%REQ(X-REQUEST-ID)%" ` +
	`"%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%" %UPSTREAM_CLUSTER_RAW% %UPSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_LOCAL_ADDRESS% ` +
	`%DOWNSTREAM_REMOTE_ADDRESS% %REQUESTED_SERVER_NAME% %ROUTE_NAME%` + "\n"

// accessLogFields are the same fields under Istio's names for JSON.
var accessLogFields = map[string]string{
	"authority":                         "%REQ(:AUTHORITY)%",
	"bytes_received":                    "%BYTES_RECEIVED%",
	"bytes_sent":                        "%BYTES_SENT%",
	"connection_termination_details":    "%CONNECTION_TERMINATION_DETAILS%",
	"downstream_local_address":          "%DOWNSTREAM_LOCAL_ADDRESS%",
	"downstream_remote_address":         "%DOWNSTREAM_REMOTE_ADDRESS%",
	"duration":                          "%DURATION%",
	"method":                            "%REQ(:METHOD)%",
	"path":                              "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%",
	"protocol":                          "%PROTOCOL%",
	"request_id":                        "%REQ(X-REQUEST-ID)%",
	"requested_server_name":             "%REQUESTED_SERVER_NAME%",
	"response_code":                     "%RESPONSE_CODE%",
	"response_code_details":             "%RESPONSE_CODE_DETAILS%",
	"response_flags":                    "%RESPONSE_FLAGS%",
	"route_name":                        "%ROUTE_NAME%",
	"start_time":                        "%START_TIME%",
	"upstream_cluster":                  "%UPSTREAM_CLUSTER_RAW%",
	"upstream_host":                     "%UPSTREAM_HOST%",
	"upstream_local_address":            "%UPSTREAM_LOCAL_ADDRESS%",
	"upstream_service_time":             "%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%",
	"upstream_transport_failure_reason": "%UPSTREAM_TRANSPORT_FAILURE_REASON%",
	"user_agent":                        "%REQ(USER-AGENT)%",
	"x_forwarded_for":                   "%REQ(X-FORWARDED-FOR)%",
}

// accessLogs returns the access logs of requests and connections in listeners.
func accessLogs(settings *policy.Prepared) []*accesslogv3.AccessLog {
	a := settings.Defaults.AccessLog
	if a == nil || a.Path == "" {
		return nil
	}
	file := &filev3.FileAccessLog{Path: a.Path, AccessLogFormat: &filev3.FileAccessLog_LogFormat{LogFormat: accessLogFormat(a)}}
	return []*accesslogv3.AccessLog{{
		Name: "envoy.access_loggers.file", ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: packed(file)},
	}}
}

func accessLogFormat(a *policy.AccessLog) *corev3.SubstitutionFormatString {
	if a.Format == policy.JSONFormat {
		named := map[string]*structpb.Value{}
		for name, value := range accessLogFields {
			named[name] = structpb.NewStringValue(value)
		}
		return &corev3.SubstitutionFormatString{Format: &corev3.SubstitutionFormatString_JsonFormat{JsonFormat: fields(named)}}
	}
	return &corev3.SubstitutionFormatString{Format: &corev3.SubstitutionFormatString_TextFormatSource{
		TextFormatSource: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: accessLogText}},
	}}
}

// applySettings applies the settings that all listeners have in common. An option of all
// listeners belongs here. Connections that match no filter chain are logged.
func applySettings(m *listenerv3.Listener, settings *policy.Prepared) {
	m.AccessLog = accessLogs(settings)
	for _, log := range m.GetAccessLog() {
		log.Filter = &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_ResponseFlagFilter{
			ResponseFlagFilter: &accesslogv3.ResponseFlagFilter{Flags: []string{"NR"}},
		}}
	}
}

// tracing returns the tracing of requests in listeners; nil for none. An Envoy accepts it
// before it has the cluster of the collector, and drops spans until then.
func tracing(settings *policy.Prepared) *hcmv3.HttpConnectionManager_Tracing {
	t := settings.Defaults.Tracing
	if t == nil {
		return nil
	}
	collector := names.Cluster(t.OpenTelemetry.Host, uint32(t.OpenTelemetry.Port)) //nolint:gosec // it is validated
	provider := &tracev3.OpenTelemetryConfig{
		GrpcService: &corev3.GrpcService{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{
			EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: collector, Authority: t.OpenTelemetry.Host},
		}},
		// The service name comes from the environment of the Envoy, as for any other program
		// that reports spans.
		ResourceDetectors: []*corev3.TypedExtensionConfig{{
			Name:        "envoy.tracers.opentelemetry.resource_detectors.environment",
			TypedConfig: packed(&environmentv3.EnvironmentResourceDetectorConfig{}),
		}},
	}
	return &hcmv3.HttpConnectionManager_Tracing{
		ClientSampling: &typev3.Percent{Value: 100}, OverallSampling: &typev3.Percent{Value: 100},
		RandomSampling: &typev3.Percent{Value: t.Sampling},
		Provider: &tracev3.Tracing_Http{
			Name: "envoy.tracers.opentelemetry", ConfigType: &tracev3.Tracing_Http_TypedConfig{TypedConfig: packed(provider)},
		},
	}
}
