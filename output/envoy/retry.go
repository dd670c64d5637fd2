package envoy

import (
	"slices"
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	previousv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	prioritiesv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/priority/previous_priorities/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// grpcConditions are those that gRPC clients know, of those that Envoy knows.
var grpcConditions = []string{"cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable"}

const byStatus = "retriable-status-codes"

var retryConditions = append([]string{
	"5xx", "gateway-error", "reset", "reset-before-request", "connect-failure", "envoy-ratelimited", "retriable-4xx", "refused-stream",
	byStatus, "retriable-headers", "http3-post-connect-failure",
}, grpcConditions...)

// Istio's defaults: two more attempts, at other endpoints, where the first one did not
// arrive.
const (
	retries      = 2
	hostAttempts = 5
)

func defaultRetries() Retries {
	return Retries{Attempts: retries, RetryOn: "connect-failure,refused-stream,unavailable,cancelled,503"}
}

// retryPolicy is how an Envoy tries again; nil for not at all.
func (p *Policy) retryPolicy() *routev3.RetryPolicy {
	r := defaultRetries()
	if p.Retries != nil {
		r = *p.Retries
	}
	if r.Attempts == 0 {
		return nil
	}
	conditions, codes := r.conditions()
	m := &routev3.RetryPolicy{
		RetryOn:              strings.Join(conditions, ","),
		NumRetries:           wrapperspb.UInt32(uint32(r.Attempts)), //nolint:gosec // it is validated
		RetriableStatusCodes: codes,
		RetryHostPredicate: []*routev3.RetryPolicy_RetryHostPredicate{{
			Name:       "envoy.retry_host_predicates.previous_hosts",
			ConfigType: &routev3.RetryPolicy_RetryHostPredicate_TypedConfig{TypedConfig: packed(&previousv3.PreviousHostsPredicate{})},
		}},
		HostSelectionRetryMaxAttempts: hostAttempts,
	}
	if p.failsOver() {
		m.RetryPriority = elsewhereAfter(min(r.Attempts, nearAttempts))
	}
	if r.PerTryTimeout > 0 {
		m.PerTryTimeout = durationpb.New(r.PerTryTimeout)
	}
	return m
}

// nearAttempts is how many attempts are made near the client before the next one is made
// farther away. It is Istio's, of retryRemoteLocalities.
const nearAttempts = 2

// elsewhereAfter has the endpoints of a priority left out of further attempts once so
// many were made. An Envoy that has not noticed yet that all of them are gone would try
// them to the end.
func elsewhereAfter(attempts int) *routev3.RetryPolicy_RetryPriority {
	config := &prioritiesv3.PreviousPrioritiesConfig{UpdateFrequency: int32(attempts)} //nolint:gosec // it is small
	return &routev3.RetryPolicy_RetryPriority{
		Name:       "envoy.retry_priorities.previous_priorities",
		ConfigType: &routev3.RetryPolicy_RetryPriority_TypedConfig{TypedConfig: packed(config)},
	}
}

// conditions are those to try again, and the statuses that are among them.
func (r *Retries) conditions() (names []string, codes []uint32) {
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

// grpcRetryPolicy is how gRPC clients try again; nil if nothing is said of it. They NACK
// a policy without attempts, and ignore conditions that they do not know.
func (p *Policy) grpcRetryPolicy() *routev3.RetryPolicy {
	if p.Retries == nil || p.Retries.Attempts == 0 {
		return nil
	}
	conditions, _ := p.Retries.conditions()
	conditions = slices.DeleteFunc(conditions, func(name string) bool { return !slices.Contains(grpcConditions, name) })
	if len(conditions) == 0 {
		return nil
	}
	return &routev3.RetryPolicy{
		RetryOn: strings.Join(conditions, ","), NumRetries: wrapperspb.UInt32(uint32(p.Retries.Attempts)), //nolint:gosec // it is validated
	}
}
