package envoy

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Validate reports everything that is wrong, as errors "field: reason" joined.
func (s *Settings) Validate() error {
	var f faults
	if s.Outbound != AllowOutbound && s.Outbound != RegistryOutbound {
		f.add("outbound", "%q is none of %s, %s; %[2]s lets workloads reach what no service stands for, %[3]s does not", s.Outbound, AllowOutbound, RegistryOutbound)
	}
	s.Edge.validate(&f)
	validateNetworks(&f, s.Networks)
	s.DNS.validate(&f)
	f.within("vhds.from", s.VHDS.From, 0, math.MaxInt32, "the number of services from which a port's hosts go one by one, such as 500, or 0 for no port")
	f.within("leds.above", s.LEDS.Above, 0, math.MaxInt32, "the number of endpoints above which a service's go one by one, such as 1000, or 0 for no service")
	s.Defaults.validate(&f, "defaults")
	s.Defaults.validateFailover(&f, "defaults", s.Defaults.OutlierDetection)
	if s.TrustDomain == "" || strings.ContainsAny(s.TrustDomain, "/: ") {
		f.add("trustDomain", "%q is no domain; give that of the certificates, such as cluster.local", s.TrustDomain)
	}
	if s.ClusterDomain == "" || strings.ContainsAny(s.ClusterDomain, "/: *") || strings.Trim(s.ClusterDomain, ".") != s.ClusterDomain {
		f.add("clusterDomain", "%q is no domain; give that in which services are NAME.NAMESPACE.svc.DOMAIN, such as cluster.local", s.ClusterDomain)
	}
	first := map[string]int{}
	for i, h := range s.Hosts {
		at := fmt.Sprintf("hosts[%d]", i)
		h.validate(&f, at, first)
		h.validateFailover(&f, at, h.over(&s.Defaults).OutlierDetection)
		if _, known := first[strings.ToLower(h.Host)]; !known {
			first[strings.ToLower(h.Host)] = i
		}
	}
	return errors.Join(f...)
}

// faults are what is wrong.
type faults []error

func (f *faults) add(field, format string, args ...any) {
	*f = append(*f, fmt.Errorf(field+": "+format, args...))
}

// within reports a number outside of bounds.
func (f *faults) within(field string, n, least, most int, example string) {
	switch {
	case n < least && least == 0:
		f.add(field, "must not be below zero; give %s", example)
	case n < least || n > most:
		f.add(field, "%d is not from %d to %d; give %s", n, least, most, example)
	}
}

// ownPorts are those of Envoy's admin interface, of redirected connections, of health and
// of metrics, as Istio's users know them.
var ownPorts = []uint32{15000, outboundPort, inboundPort, healthPort, metricsPort}

const (
	healthPort  = 15021
	metricsPort = 15090
)

func (h *HostPolicy) validate(f *faults, at string, first map[string]int) {
	name := strings.TrimPrefix(h.Host, "*.")
	switch earlier, twice := first[strings.ToLower(h.Host)]; {
	case h.Host == "":
		f.add(at+".host", "missing; name a host, such as reviews.example.com, or some: *.example.com")
	case h.Host == "*":
		f.add(at+".host", "%q is every host; what holds for all belongs into defaults", h.Host)
	case name == "", strings.ContainsAny(name, "*/ :"), strings.HasPrefix(name, "."):
		f.add(at+".host", "%q is neither the name of a host, such as reviews.example.com, nor *. and what names end with, such as *.example.com", h.Host)
	case twice:
		f.add(at+".host", "%q is that of hosts[%d] already, which counts; make one entry of both", h.Host, earlier)
	}
	if h.AccessLog != nil {
		f.add(at+".accessLog", "is of listeners, which hosts share; set it in defaults")
	}
	if h.Tracing != nil {
		f.add(at+".tracing", "is of listeners, which hosts share; set it in defaults")
	}
	validateSubsets(f, at, h.Subsets)
	own := h.Policy
	own.AccessLog, own.Tracing = nil, nil
	own.validate(f, at)
}

func (p *Policy) validate(f *faults, at string) {
	at += "."
	if p.ConnectTimeout != nil {
		f.duration(at+"connectTimeout", *p.ConnectTimeout, "10s")
	}
	if p.LoadBalancer != nil {
		p.LoadBalancer.validate(f, at+"loadBalancer")
	}
	if p.Retries != nil {
		p.Retries.validate(f, at+"retries.")
	}
	if p.OutlierDetection != nil {
		p.OutlierDetection.validate(f, at+"outlierDetection.")
	}
	if p.CircuitBreakers != nil {
		p.CircuitBreakers.validate(f, at+"circuitBreakers.")
	}
	if p.TCPKeepalive != nil {
		p.TCPKeepalive.validate(f, at+"tcpKeepalive.")
	}
	if p.TLS != nil {
		p.TLS.validate(f, at+"tls.")
	}
	if p.AccessLog != nil && p.AccessLog.Format != textFormat && p.AccessLog.Format != jsonFormat {
		f.add(at+"accessLog.format", "%q is none of %s, %s", p.AccessLog.Format, textFormat, jsonFormat)
	}
	if p.AccessLog != nil && p.AccessLog.Path != "" && !strings.HasPrefix(p.AccessLog.Path, "/") { // Envoy rejects every listener for it
		f.add(at+"accessLog.path", "%q is no path from the root of the Envoy's machine; give such as /dev/stdout", p.AccessLog.Path)
	}
	if p.Tracing != nil {
		p.Tracing.validate(f, at+"tracing.")
	}
}

// duration reports a time that is too short, or longer than any that is meant.
func (f *faults) duration(field string, d time.Duration, example string) {
	const least, most = time.Millisecond, 365 * 24 * time.Hour
	if d < least || d > most {
		f.add(field, "%s is not from %s to %s; give such as %s", d, least, most, example)
	}
}

// simpleBalancers are the load balancers that have a name alone.
var simpleBalancers = []string{"LEAST_REQUEST", "ROUND_ROBIN", "RANDOM"}

func (l *LoadBalancer) validate(f *faults, at string) {
	hash := l.ConsistentHash
	switch {
	case l.Simple == "" && hash == nil:
		f.add(at, "names neither; give simple: %s, or consistentHash", strings.Join(simpleBalancers, ", "))
	case l.Simple != "" && hash != nil:
		f.add(at, "has both simple and consistentHash; requests are balanced in one way, so remove the other")
	case hash == nil && !slices.Contains(simpleBalancers, l.Simple):
		f.add(at+".simple", "%q is none of %s", l.Simple, strings.Join(simpleBalancers, ", "))
	case hash != nil && (hash.HTTPHeaderName != "") == hash.UseSourceIP:
		f.add(at+".consistentHash", "needs one of httpHeaderName, such as x-user, and useSourceIp: true")
	case hash != nil && !isHeaderName(hash.HTTPHeaderName):
		f.add(at+".consistentHash.httpHeaderName", "%q is not the name of a header, such as x-user", hash.HTTPHeaderName)
	}
}

func isHeaderName(name string) bool {
	for _, r := range name {
		if r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) {
			return false
		}
	}
	return true
}

const mostAttempts = 1000

func (r *Retries) validate(f *faults, at string) {
	f.within(at+"attempts", r.Attempts, 0, mostAttempts, "2, or 0 for none")
	if r.PerTryTimeout != 0 {
		f.duration(at+"perTryTimeout", r.PerTryTimeout, "2s, or 0s for none")
	}
	for condition := range strings.SplitSeq(r.RetryOn, ",") {
		if condition = strings.TrimSpace(condition); !slices.Contains(retryConditions, condition) && !isStatus(condition) {
			f.add(at+"retryOn", "%q is neither a status such as 503 nor one of %s", condition, strings.Join(retryConditions, ", "))
		}
	}
}

// isStatus reports whether a condition is a status of HTTP.
func isStatus(condition string) bool {
	n, err := strconv.Atoi(condition)
	return err == nil && n >= 100 && n < 600
}

func (o *OutlierDetection) validate(f *faults, at string) {
	f.within(at+"consecutive5xxErrors", o.Consecutive5xxErrors, 0, noLimit, "5, or 0 not to count them")
	f.within(at+"consecutiveGatewayErrors", o.ConsecutiveGatewayErrors, 0, noLimit, "5, or 0 not to count them")
	f.duration(at+"interval", o.Interval, "10s")
	f.duration(at+"baseEjectionTime", o.BaseEjectionTime, "30s")
	f.within(at+"maxEjectionPercent", o.MaxEjectionPercent, 0, 100, "such as 10")
	f.within(at+"minHealthPercent", o.MinHealthPercent, 0, 100, "such as 50, or 0")
}

func (c *CircuitBreakers) validate(f *faults, at string) {
	const example = "such as 1024, or leave it out for no limit"
	f.within(at+"maxConnections", c.MaxConnections, 1, noLimit, example)
	f.within(at+"maxPendingRequests", c.MaxPendingRequests, 1, noLimit, example)
	f.within(at+"maxRequests", c.MaxRequests, 1, noLimit, example)
	f.within(at+"maxRetries", c.MaxRetries, 1, noLimit, example)
}

func (k *TCPKeepalive) validate(f *faults, at string) {
	f.within(at+"probes", k.Probes, 0, 127, "such as 9, or leave it out for what the system has")
	f.seconds(at+"time", k.Time)
	f.seconds(at+"interval", k.Interval)
}

// seconds reports a time that a socket does not take.
func (f *faults) seconds(field string, d time.Duration) {
	const most = 32767 * time.Second
	if d < 0 || d > most || d%time.Second != 0 {
		f.add(field, "%s is not whole seconds from 1s to %s; give such as 75s, or leave it out for what the system has", d, most)
	}
}

func (t *Tracing) validate(f *faults, at string) {
	switch host := t.OpenTelemetry.Host; {
	case host == "":
		f.add(at+"openTelemetry.host", "missing; name the service of the catalog that takes spans over gRPC, such as otel.example.com")
	case strings.ContainsAny(host, "*/|: "):
		f.add(at+"openTelemetry.host", "%q is not the name of a service; give its host alone, such as otel.example.com", host)
	}
	f.within(at+"openTelemetry.port", t.OpenTelemetry.Port, 1, highestPort, "such as 4317")
	if !(t.Sampling >= 0 && t.Sampling <= 100) {
		f.add(at+"sampling", "%v is not from 0 to 100 percent", t.Sampling)
	}
}
