package policy

import "time"

// OutlierDetection ejects failing endpoints for a while.
type OutlierDetection struct {
	Consecutive5xxErrors     int           `json:"consecutive5xxErrors"`
	ConsecutiveGatewayErrors int           `json:"consecutiveGatewayErrors"`
	Interval                 time.Duration `json:"interval"`
	BaseEjectionTime         time.Duration `json:"baseEjectionTime"`
	MaxEjectionPercent       int           `json:"maxEjectionPercent"`
	MinHealthPercent         int           `json:"minHealthPercent"`
}

// SetDefaults sets the defaults.
func (o *OutlierDetection) SetDefaults() {
	*o = OutlierDetection{Consecutive5xxErrors: 5, Interval: 10 * time.Second, BaseEjectionTime: 30 * time.Second, MaxEjectionPercent: 10}
}

func (o *OutlierDetection) validate(f *faults, at string) {
	f.within(at+"consecutive5xxErrors", o.Consecutive5xxErrors, 0, noLimit, "5, or 0 not to count them")
	f.within(at+"consecutiveGatewayErrors", o.ConsecutiveGatewayErrors, 0, noLimit, "5, or 0 not to count them")
	f.duration(at+"interval", o.Interval, "10s")
	f.duration(at+"baseEjectionTime", o.BaseEjectionTime, "30s")
	f.within(at+"maxEjectionPercent", o.MaxEjectionPercent, 0, 100, "a number such as 10")
	f.within(at+"minHealthPercent", o.MinHealthPercent, 0, 100, "a number such as 50, or 0")
}

// CircuitBreakers limit the load of one client on a service.
type CircuitBreakers struct {
	MaxConnections     int `json:"maxConnections"`
	MaxPendingRequests int `json:"maxPendingRequests"`
	MaxRequests        int `json:"maxRequests"`
	MaxRetries         int `json:"maxRetries"`
}

// SetDefaults sets the defaults.
func (c *CircuitBreakers) SetDefaults() {
	*c = CircuitBreakers{noLimit, noLimit, noLimit, noLimit}
}

// noLimit is a limit that no client reaches.
const noLimit = 1<<32 - 1

func (c *CircuitBreakers) validate(f *faults, at string) {
	const example = "a number such as 1024, or leave it out for no limit"
	f.within(at+"maxConnections", c.MaxConnections, 1, noLimit, example)
	f.within(at+"maxPendingRequests", c.MaxPendingRequests, 1, noLimit, example)
	f.within(at+"maxRequests", c.MaxRequests, 1, noLimit, example)
	f.within(at+"maxRetries", c.MaxRetries, 1, noLimit, example)
}

// TCPKeepalive detects dead connections. The operating system decides where a field is
// zero.
type TCPKeepalive struct {
	Probes   int           `json:"probes"`
	Time     time.Duration `json:"time"`
	Interval time.Duration `json:"interval"`
}

func (k *TCPKeepalive) validate(f *faults, at string) {
	f.within(at+"probes", k.Probes, 0, 127, "a number such as 9, or leave it out for the default of the operating system")
	f.seconds(at+"time", k.Time)
	f.seconds(at+"interval", k.Interval)
}
