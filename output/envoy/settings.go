package envoy

import "time"

// Settings are what the configuration says of Envoys, and of gRPC clients as far as
// they can do it. A process has one of them, which never changes.
type Settings struct {
	// Outbound is what becomes of connections to whatever no service stands for:
	// [AllowOutbound] or [RegistryOutbound].
	Outbound string `json:"outbound"`
	Edge     Edge   `json:"edge"`
	LEDS     LEDS   `json:"leds"`
	// Networks are those of which some endpoints are reached through gateways.
	Networks []Network `json:"networks"`
	// DNS has sidecars answer lookups; nil has them answer none.
	DNS  *DNS `json:"dns"`
	VHDS VHDS `json:"vhds"`
	// Defaults are of every host, and Hosts of some: the first entry that matches.
	Defaults Policy       `json:"defaults"`
	Hosts    []HostPolicy `json:"hosts"`
	// TrustDomain is that of the accounts of endpoints.
	TrustDomain string `json:"trustDomain"`
	// ClusterDomain is that in which names may be short, NAME.NAMESPACE.svc.DOMAIN.
	ClusterDomain string `json:"clusterDomain"`
}

// VHDS says of which ports Envoys take the virtual hosts one by one (virtual host
// discovery). docs/design/0028 says why it is made as it is.
type VHDS struct {
	// From is how many services a port must have; 0 is for no port.
	From int `json:"from"`
}

// What becomes of connections to whatever no service stands for.
const (
	AllowOutbound    = "allow"    // they go where they were going
	RegistryOutbound = "registry" // they end
)

// HostPolicy is a policy of some hosts.
type HostPolicy struct {
	// Host is the name of one, or *.SUFFIX for all that end like that.
	Host string `json:"host"`
	Policy
	Subsets []Subset `json:"subsets"`
}

// Policy is how hosts are called. What is nil is not said: then it is as in the
// defaults, or as Istio has it.
type Policy struct {
	ConnectTimeout   *time.Duration    `json:"connectTimeout"`
	LoadBalancer     *LoadBalancer     `json:"loadBalancer"`
	Retries          *Retries          `json:"retries"`
	OutlierDetection *OutlierDetection `json:"outlierDetection"`
	CircuitBreakers  *CircuitBreakers  `json:"circuitBreakers"`
	TCPKeepalive     *TCPKeepalive     `json:"tcpKeepalive"`
	// LocalityFailover prefers endpoints near the client, and turns to others when
	// those fail. It is on where there is outlier detection, which finds that out.
	LocalityFailover *bool        `json:"localityFailover"`
	TLS              *UpstreamTLS `json:"tls"`
	// AccessLog and Tracing are of listeners, which hosts share: they are in the
	// defaults only.
	AccessLog *AccessLog `json:"accessLog"`
	Tracing   *Tracing   `json:"tracing"`
}

// LoadBalancer chooses the endpoint of a request: by one of two ways.
type LoadBalancer struct {
	Simple         string          `json:"simple"`
	ConsistentHash *ConsistentHash `json:"consistentHash"`
}

// ConsistentHash has requests that are alike go to one endpoint.
type ConsistentHash struct {
	HTTPHeaderName string `json:"httpHeaderName"`
	UseSourceIP    bool   `json:"useSourceIp"`
}

// Retries are further attempts at a request.
type Retries struct {
	Attempts      int           `json:"attempts"` // beside the first; 0 is none
	PerTryTimeout time.Duration `json:"perTryTimeout"`
	RetryOn       string        `json:"retryOn"` // conditions and status codes, with commas
}

// SetDefaults gives them what they have if nothing is said.
func (r *Retries) SetDefaults() { *r = defaultRetries() }

// OutlierDetection takes endpoints out for a while that fail.
type OutlierDetection struct {
	Consecutive5xxErrors     int           `json:"consecutive5xxErrors"`
	ConsecutiveGatewayErrors int           `json:"consecutiveGatewayErrors"`
	Interval                 time.Duration `json:"interval"`
	BaseEjectionTime         time.Duration `json:"baseEjectionTime"`
	MaxEjectionPercent       int           `json:"maxEjectionPercent"`
	MinHealthPercent         int           `json:"minHealthPercent"`
}

// SetDefaults gives it what it has if nothing is said.
func (o *OutlierDetection) SetDefaults() {
	*o = OutlierDetection{Consecutive5xxErrors: 5, Interval: 10 * time.Second, BaseEjectionTime: 30 * time.Second, MaxEjectionPercent: 10}
}

// CircuitBreakers bound what is under way to a service from one client.
type CircuitBreakers struct {
	MaxConnections     int `json:"maxConnections"`
	MaxPendingRequests int `json:"maxPendingRequests"`
	MaxRequests        int `json:"maxRequests"`
	MaxRetries         int `json:"maxRetries"`
}

// SetDefaults gives them what they have if nothing is said.
func (c *CircuitBreakers) SetDefaults() {
	*c = CircuitBreakers{noLimit, noLimit, noLimit, noLimit}
}

// noLimit is more than ever is under way.
const noLimit = 1<<32 - 1

// TCPKeepalive finds out about connections that are dead. What is zero is as the
// operating system has it.
type TCPKeepalive struct {
	Probes   int           `json:"probes"`
	Time     time.Duration `json:"time"`
	Interval time.Duration `json:"interval"`
}

// AccessLog is where each request and connection is written down.
type AccessLog struct {
	Path   string `json:"path"`   // of a file; empty for none
	Format string `json:"format"` // text or json
}

// SetDefaults gives it what it has if nothing is said.
func (a *AccessLog) SetDefaults() { *a = AccessLog{Path: "/dev/stdout", Format: textFormat} }

// The formats of an access log.
const (
	textFormat = "text"
	jsonFormat = "json"
)

// Tracing has Envoys report the requests that they carry.
type Tracing struct {
	OpenTelemetry Collector `json:"openTelemetry"`
	Sampling      float64   `json:"sampling"` // percent
}

// SetDefaults gives it what it has if nothing is said.
func (t *Tracing) SetDefaults() { t.Sampling = 1 }

// Collector is the service that takes the reports.
type Collector struct {
	Host string `json:"host"`
	Port int    `json:"port"`
}
