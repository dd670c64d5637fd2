package envoy

import (
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	filev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// accessLogText is the format that Istio's users know.
const accessLogText = `[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE% %RESPONSE_FLAGS% ` +
	`%RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% "%UPSTREAM_TRANSPORT_FAILURE_REASON%" %BYTES_RECEIVED% %BYTES_SENT% ` +
	`%DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "%REQ(X-FORWARDED-FOR)%" "%REQ(USER-AGENT)%" "%REQ(X-REQUEST-ID)%" ` +
	`"%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%" %UPSTREAM_CLUSTER_RAW% %UPSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_LOCAL_ADDRESS% ` +
	`%DOWNSTREAM_REMOTE_ADDRESS% %REQUESTED_SERVER_NAME% %ROUTE_NAME%` + "\n"

// accessLogFields are the same with names, which are Istio's too.
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

// accessLogs are those of requests and connections in the listeners of a view.
func (v View) accessLogs() []*accesslogv3.AccessLog {
	said := v.policyOf("").AccessLog
	if said == nil || said.Path == "" {
		return nil
	}
	file := &filev3.FileAccessLog{Path: said.Path, AccessLogFormat: &filev3.FileAccessLog_LogFormat{LogFormat: accessLogFormat(said)}}
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

// logUnmatched has a listener log the connections that none of its chains takes.
func (v View) logUnmatched(m *listenerv3.Listener) {
	m.AccessLog = v.accessLogs()
	for _, log := range m.GetAccessLog() {
		log.Filter = &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_ResponseFlagFilter{
			ResponseFlagFilter: &accesslogv3.ResponseFlagFilter{Flags: []string{"NR"}},
		}}
	}
}
