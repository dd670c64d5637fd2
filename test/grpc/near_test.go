package grpc_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/test/grpc/clients"
)

// TestNearEndpointsAreCalledWhileTheyAnswer has every implementation be in the zone of
// one endpoint, and call it alone until it is gone; weights that differ are kept apart.
func TestNearEndpointsAreCalledWhileTheyAnswer(t *testing.T) {
	each(t, func(t *testing.T, impl clients.Implementation) {
		b := startBackends(t, "near", "one far", "two far")
		isthmus := newIsthmus(t)
		isthmus.envoy = "defaults: {outlierDetection: {}}"
		isthmus.configure("")
		isthmus.WriteEndpoints(reviews, endpoint{b[1], 1, "us/a", ""}, endpoint{b[0], 1, "eu/a", ""}, endpoint{b[2], 3, "us/a", ""})
		isthmus.Start()
		bootstrap := printBootstrap(t, impl, "--address", isthmus.XDS, "--locality", "eu/a")
		client := dialWith(t, interval, impl, []string{bootstrap}, reviews+":80")
		client.AwaitAnswers(reviews+":80", "near")
		b[0].Stop()
		client.AwaitAnswers(reviews+":80", "one far", "two far")
	})
}
