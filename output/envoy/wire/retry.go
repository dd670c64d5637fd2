package wire

import (
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	previousv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	prioritiesv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/priority/previous_priorities/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// hostAttempts is Istio's limit of choices until a retry has another endpoint.
const hostAttempts = 5

// retryPolicy returns the retries of an Envoy; nil for none.
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
		m.RetryPriority = fartherAfter(min(r.Attempts, nearAttempts))
	}
	if r.PerTryTimeout > 0 {
		m.PerTryTimeout = durationpb.New(r.PerTryTimeout)
	}
	return m
}

// nearAttempts is the number of attempts near the client before attempts farther away. It is
// that of Istio's retryRemoteLocalities.
const nearAttempts = 2

// fartherAfter excludes the endpoints of a priority from retries after some attempts there.
// Otherwise an Envoy would keep trying a priority without endpoints.
func fartherAfter(attempts int) *routev3.RetryPolicy_RetryPriority {
	config := &prioritiesv3.PreviousPrioritiesConfig{UpdateFrequency: int32(attempts)} //nolint:gosec // it is small
	return &routev3.RetryPolicy_RetryPriority{
		Name:       "envoy.retry_priorities.previous_priorities",
		ConfigType: &routev3.RetryPolicy_RetryPriority_TypedConfig{TypedConfig: packed(config)},
	}
}

// grpcRetryPolicy returns the retries of gRPC clients; nil for none. They NACK a policy
// without attempts, and ignore unknown conditions.
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
