package istio

import (
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

// rule is the schema's constraints on a field of the custom resources beside its type. Zero
// means no constraint.
type rule struct {
	required    bool // and not empty, if it is a string
	least, most int  // entries of a list or map
	chars       int  // at most, of a string or of each entry
	filled      bool // a string, or each entry, is not empty
	port        bool // a number, or each entry, is 1 to 65535
	positive    bool // a number is not below zero
}

// schema holds the bounds of Istio's custom resource definitions by field, with the names
// of the protobuf messages. Rules that relate several fields are checked by kind.
var schema = map[string]rule{
	"ServiceEntry.hosts":      {required: true, least: 1, most: 256},
	"ServiceEntry.addresses":  {most: 256, chars: 64},
	"ServiceEntry.ports":      {most: 256},
	"ServiceEntry.endpoints":  {most: 4096},
	"ServicePort.number":      {required: true, port: true},
	"ServicePort.name":        {required: true, chars: 256},
	"ServicePort.protocol":    {chars: 256},
	"ServicePort.target_port": {port: true},

	"WorkloadEntry.address":         {chars: 256},
	"WorkloadEntry.ports":           {most: 128, port: true},
	"WorkloadEntry.labels":          {most: 256},
	"WorkloadEntry.network":         {chars: 2048},
	"WorkloadEntry.locality":        {chars: 2048},
	"WorkloadEntry.service_account": {chars: 253},
	"WorkloadSelector.labels":       {most: 256, chars: 63},

	"WorkloadGroup.template":                                           {required: true},
	"WorkloadGroup.ObjectMeta.labels":                                  {most: 256},
	"WorkloadGroup.ObjectMeta.annotations":                             {most: 256},
	"ReadinessProbe.initial_delay_seconds":                             {positive: true},
	"ReadinessProbe.timeout_seconds":                                   {positive: true},
	"ReadinessProbe.period_seconds":                                    {positive: true},
	"ReadinessProbe.success_threshold":                                 {positive: true},
	"ReadinessProbe.failure_threshold":                                 {positive: true},
	"HTTPHealthCheckConfig.port":                                       {required: true, port: true},
	"TCPHealthCheckConfig.port":                                        {required: true, port: true},
	"GrpcHealthCheckConfig.port":                                       {port: true},
	"ExecHealthCheckConfig.command":                                    {required: true, least: 1, filled: true},
	"IstioIngressListener.port":                                        {required: true},
	"IstioEgressListener.hosts":                                        {required: true, least: 1},
	"Destination.host":                                                 {required: true},
	"ServerTLSSettings.credential_names":                               {least: 1, most: 2},
	"ServerTLSSettings.tls_certificates":                               {least: 1, most: 2},
	"ConnectionPoolSettings.HTTPSettings.http1_max_pending_requests":   {positive: true},
	"ConnectionPoolSettings.HTTPSettings.http2_max_requests":           {positive: true},
	"ConnectionPoolSettings.HTTPSettings.max_requests_per_connection":  {positive: true},
	"ConnectionPoolSettings.HTTPSettings.max_retries":                  {positive: true},
	"ConnectionPoolSettings.HTTPSettings.max_concurrent_streams":       {positive: true},
	"ConnectionPoolSettings.HTTPSettings.ConnectionKeepalive.interval": {required: true},
	"ConnectionPoolSettings.HTTPSettings.ConnectionKeepalive.timeout":  {required: true},
	"ConnectionPoolSettings.TCPSettings.max_connections":               {positive: true},
}

func ruleOf(fd protoreflect.FieldDescriptor) rule {
	return schema[strings.TrimPrefix(string(fd.FullName()), "istio.networking.v1alpha3.")]
}

func checkRequired(node *yamlpos.Node, md protoreflect.MessageDescriptor, at trail, p *problems) {
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		r, value := ruleOf(fd), node.Get(fd.JSONName())
		empty := !present(value) || value.Kind() == yamlpos.String && value.Text() == ""
		switch {
		case !r.required || !empty:
		case r.least > 0:
			p.add(at.field(fd.JSONName()), "missing: write at least one")
		default:
			p.add(at.field(fd.JSONName()), "missing: write it")
		}
	}
}

func (r rule) checkCount(n int, at trail, p *problems) {
	if n < r.least {
		p.add(at, "missing: write at least one")
	}
	if r.most > 0 && n > r.most {
		p.add(at, "%d entries, and at most %d are allowed: write several objects", n, r.most)
	}
}

func (r rule) checkText(s string, at trail, p *problems) {
	if r.filled && s == "" {
		p.add(at, "empty: write something, or remove it")
	}
	if r.chars > 0 && len(s) > r.chars && utf8.RuneCountInString(s) > r.chars {
		p.add(at, "%d characters, and at most %d are allowed: shorten it", utf8.RuneCountInString(s), r.chars)
	}
}

func (r rule) checkNumber(n int64, at trail, p *problems) {
	if r.port && (n < 1 || n > 65535) {
		p.add(at, "%d is not a port: use 1 to 65535", n)
	}
	if r.positive && n < 0 {
		p.add(at, "%d is below zero: use 0 or more", n)
	}
}
