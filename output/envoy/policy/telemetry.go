package policy

import "strings"

// AccessLog is the log of requests and connections.
type AccessLog struct {
	Path   string `json:"path"`   // of a file; empty for none
	Format string `json:"format"` // text or json
}

// SetDefaults sets the defaults.
func (a *AccessLog) SetDefaults() { *a = AccessLog{Path: "/dev/stdout", Format: TextFormat} }

// The formats of an access log.
const (
	TextFormat = "text"
	JSONFormat = "json"
)

func (a *AccessLog) validate(f *faults, at string) {
	if a.Format != TextFormat && a.Format != JSONFormat {
		f.add(at+"format", "%q is none of %s, %s", a.Format, TextFormat, JSONFormat)
	}
	if a.Path != "" && !strings.HasPrefix(a.Path, "/") { // Envoy rejects every listener for it
		f.add(at+"path", "%q is not an absolute path on the Envoy's machine; give one, such as /dev/stdout", a.Path)
	}
}

// Tracing makes Envoys report spans of requests.
type Tracing struct {
	OpenTelemetry Collector `json:"openTelemetry"`
	Sampling      float64   `json:"sampling"` // percent
}

// SetDefaults sets the defaults.
func (t *Tracing) SetDefaults() { t.Sampling = 1 }

// Collector is the service that receives the spans.
type Collector struct {
	Host string `json:"host"`
	Port int    `json:"port"`
}

func (t *Tracing) validate(f *faults, at string) {
	switch host := t.OpenTelemetry.Host; {
	case host == "":
		f.add(at+"openTelemetry.host", "missing; name the service in the catalog that receives spans over gRPC, such as otel.example.com")
	case strings.ContainsAny(host, "*/|: "):
		f.add(at+"openTelemetry.host", "%q is not a host; give the host of the service without port, such as otel.example.com", host)
	}
	f.within(at+"openTelemetry.port", t.OpenTelemetry.Port, 1, highestPort, "a number such as 4317")
	if !(t.Sampling >= 0 && t.Sampling <= 100) {
		f.add(at+"sampling", "%v is not from 0 to 100 percent", t.Sampling)
	}
}
