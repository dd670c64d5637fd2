package feature_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// A client that subscribes and never sends anything again is shown, and others
// are served as if it were not there.
func TestStuckClientIsShown(t *testing.T) {
	t.Parallel()
	files, one, two := newRegistry(t, "files"), startBackend(t, "one"), startBackend(t, "two")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(one)})
	isthmus := start(t, files)
	subscribeAndFallSilent(t, isthmus, "stuck")
	client := dial(t, isthmus, reviews+":80", "shop")
	client.AwaitAnswers("one")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(two)})
	client.AwaitAnswers("two")
	await(t, "the stuck client to be shown as waiting for a second", func() error {
		var list []admin.Client
		isthmus.mustRead("/api/v1/clients", &list)
		for _, c := range list {
			on := c.Types[xdsclient.CDS]
			if age, err := time.ParseDuration(on.Age); c.ID == "stuck" && err == nil && age >= time.Second && on.State == "waiting" && on.Reason != "" {
				return nil
			}
		}
		return fmt.Errorf("shown are %+v", list)
	})
}

func subscribeAndFallSilent(t *testing.T, i *isthmus, id string) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+i.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	i.clients = append(i.clients, func() { cancel(); _ = conn.Close() })
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: id}, TypeUrl: xdsclient.CDS}); err != nil {
		t.Fatal(err)
	}
}
