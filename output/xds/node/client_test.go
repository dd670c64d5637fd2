package node

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// A proxy says as in Istio that it cannot bind low ports.
func TestProxiesSayWhatTheyCannotBind(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]bool{"true": true, "1": true, "false": false, "": false, "yes": false} {
		node := &corev3.Node{Id: "sidecar~10.0.0.1~a.n~n.svc.cluster.local", Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{
			"UNPRIVILEGED_POD": structpb.NewStringValue(said), "INTERCEPTION_MODE": structpb.NewStringValue("NONE"),
		}}}
		if got, _ := proxyOf(node, nil); got.Unprivileged != want || got.Interception != "NONE" {
			t.Errorf("%q: %+v", said, got)
		}
	}
}
