package grpc_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/test/grpc/clients"
)

// TestClientsTakeWhatIsConfigured has every implementation take the policies of hosts:
// it is given what it reads of them, and NACKs nothing.
func TestClientsTakeWhatIsConfigured(t *testing.T) {
	for name, hosts := range map[string]string{
		"all": `retries: {attempts: 3, retryOn: "unavailable,cancelled,503", perTryTimeout: 1s}, circuitBreakers: {maxRequests: 100}, outlierDetection: {},
			loadBalancer: {consistentHash: {httpHeaderName: x-user}}, tcpKeepalive: {time: 30s}, connectTimeout: 2s`,
		"no retries":                 `retries: {attempts: 0}, loadBalancer: {simple: RANDOM}`,
		"no retries that gRPC knows": `retries: {attempts: 1, retryOn: "5xx,503"}`,
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, impl clients.Implementation) {
				b := startBackends(t, "one", "two")
				isthmus := newIsthmus(t)
				isthmus.envoy = "defaults: {" + hosts + "}"
				isthmus.configure("")
				isthmus.WriteEndpoints(reviews, endpoint{Backend: b[0]}, endpoint{Backend: b[1]})
				isthmus.Start()
				client := dial(t, impl, isthmus, reviews+":80")
				client.AwaitAnswers(reviews+":80", "one", "two")
				client.MustNotHaveFailed(reviews + ":80")
			})
		})
	}
}
