package policy

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Retries are further attempts at a request.
type Retries struct {
	Attempts      int           `json:"attempts"` // beside the first; 0 is none
	PerTryTimeout time.Duration `json:"perTryTimeout"`
	RetryOn       string        `json:"retryOn"` // conditions and status codes, with commas
}

// defaultRetries are Istio's: two more attempts, where the first one did not arrive.
const (
	defaultAttempts = 2
	defaultRetryOn  = "connect-failure,refused-stream,unavailable,cancelled,503"
)

// SetDefaults sets the defaults.
func (r *Retries) SetDefaults() { *r = Retries{Attempts: defaultAttempts, RetryOn: defaultRetryOn} }

// EffectiveRetries are the retries of an Envoy: those of the policy, or the defaults.
func (p *Policy) EffectiveRetries() (r Retries) {
	if p.Retries != nil {
		return *p.Retries
	}
	r.SetDefaults()
	return r
}

// grpcConditions are the conditions that gRPC clients know, of those that Envoy knows.
var grpcConditions = []string{"cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable"}

// byStatus is the condition that makes an Envoy look at status codes.
const byStatus = "retriable-status-codes"

var retryConditions = append([]string{
	"5xx", "gateway-error", "reset", "reset-before-request", "connect-failure", "envoy-ratelimited", "retriable-4xx", "refused-stream",
	byStatus, "retriable-headers", "http3-post-connect-failure",
}, grpcConditions...)

// Conditions are the conditions of a retry, and the status codes among them.
func (r *Retries) Conditions() (names []string, codes []uint32) {
	for name := range strings.SplitSeq(r.RetryOn, ",") {
		name = strings.TrimSpace(name)
		if code, err := strconv.ParseUint(name, 10, 32); err == nil {
			codes = append(codes, uint32(code))
			name = byStatus
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, codes
}

// GRPCConditions are the conditions of a retry that gRPC clients know.
func (r *Retries) GRPCConditions() []string {
	conditions, _ := r.Conditions()
	return slices.DeleteFunc(conditions, func(name string) bool { return !slices.Contains(grpcConditions, name) })
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
