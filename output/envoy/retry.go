package envoy

// retryConditions are those that Envoy knows.
var retryConditions = []string{
	"5xx", "gateway-error", "reset", "reset-before-request", "connect-failure", "envoy-ratelimited", "retriable-4xx", "refused-stream",
	"retriable-status-codes", "retriable-headers", "http3-post-connect-failure",
	"cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable",
}

// defaultRetries are Istio's: two more attempts, at other endpoints, where the first
// one did not arrive.
func defaultRetries() Retries {
	return Retries{Attempts: 2, RetryOn: "connect-failure,refused-stream,unavailable,cancelled,503"}
}
