package envoy

import (
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	previousv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	prioritiesv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/priority/previous_priorities/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// hostAttempts is Istio's: how often an Envoy chooses an endpoint for a further attempt until
// it is another one.
const hostAttempts = 5

// retryPolicy is how an Envoy tries again; nil for not at all.
func retryPolicy(p *policy.Policy) *routev3.RetryPolicy {
	r := p.EffectiveRetries()
	if r.Attempts == 0 {
		return nil
	}
	conditions, codes := r.Conditions()
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
	if p.FailsOver() {
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

// grpcRetryPolicy is how gRPC clients try again; nil if nothing is said of it. They NACK
// a policy without attempts, and ignore conditions that they do not know.
func grpcRetryPolicy(p *policy.Policy) *routev3.RetryPolicy {
	if p.Retries == nil || p.Retries.Attempts == 0 {
		return nil
	}
	conditions := p.Retries.GRPCConditions()
	if len(conditions) == 0 {
		return nil
	}
	return &routev3.RetryPolicy{
		RetryOn: strings.Join(conditions, ","), NumRetries: wrapperspb.UInt32(uint32(p.Retries.Attempts)), //nolint:gosec // it is validated
	}
}
