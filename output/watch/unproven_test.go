package watch_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/output/watch"
	"github.com/isthmus-mesh/isthmus/test/testkit/unproven"
)

// guarded returns a rig that demands a proof, with the connection of a client without one.
func guarded(t *testing.T, limits streams.Limits) (*rig, unproven.Border) {
	t.Helper()
	b := unproven.NewBorder(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- b.Verifier.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return newRig(t, setup{tls: b.TLS, verifier: b.Verifier, dial: b.Credentials(), limits: watch.Limits{Limits: limits}}), b
}

// proven returns a context that gives its streams a token, and the token's id.
func proven(t *testing.T, b unproven.Border) (ctx context.Context, id string) {
	t.Helper()
	text, entry, err := b.Own.Issue(authority.Grant{Namespace: "shop", Account: "reader", TTL: time.Hour}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+text), entry.ID
}

// Health and reflection are methods like all others: a client without a proof is not served
// them. It may ask whether the listener serves.
func TestUnprovenClientsAreServedHealthChecksAlone(t *testing.T) {
	t.Parallel()
	r, _ := guarded(t, streams.Limits{})
	unproven.IsRejected(t, r.server, r.conn)
	if n := len(r.server.GetServiceInfo()); n != 4 { // and two releases of reflection
		t.Errorf("%d services are registered", n)
	}
	if answer, err := healthv1.NewHealthClient(r.conn).Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil || answer.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("the health is %v, %v", answer, err)
	}
}

// The services of gRPC itself end with the client's proof.
func TestRevokedClientsAreServedNoHealth(t *testing.T) {
	t.Parallel()
	r, b := guarded(t, streams.Limits{})
	ctx, id := proven(t, b)
	client := healthv1.NewHealthClient(r.conn)
	health, err := client.Watch(ctx, &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := health.Recv(); err != nil || answer.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Fatalf("the health is %v, %v", answer, err)
	}
	reflection, err := reflectionv1.NewServerReflectionClient(r.conn).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		request := &reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}
		if err := reflection.Send(request); err != nil {
			t.Fatal(err)
		}
		if answer, err := reflection.Recv(); err != nil || len(answer.GetListServicesResponse().GetService()) != 4 {
			t.Fatalf("reflection answers %v, %v", answer, err)
		}
	}
	if _, err := b.Own.RevokeToken(id, time.Now()); err != nil {
		t.Fatal(err)
	}
	_, ended := health.Recv()
	_, reflected := reflection.Recv()
	_, checked := client.Check(ctx, &healthv1.HealthCheckRequest{})
	for name, err := range map[string]error{"watch": ended, "reflection": reflected, "check": checked} {
		if status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "revoked") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if counts := unproven.Counts(r.server); counts["certificate"] != 2 || counts["identity"] != 1 {
		t.Errorf("counted are %v", counts)
	}
}

// A client has as many streams of health as it has of others.
func TestWatchesOfHealthCountAsStreams(t *testing.T) {
	t.Parallel()
	r, b := guarded(t, streams.Limits{StreamsPerClient: 2})
	ctx, _ := proven(t, b)
	watches := func() (grpc.ServerStreamingClient[healthv1.HealthCheckResponse], error) {
		stream, err := healthv1.NewHealthClient(r.conn).Watch(ctx, &healthv1.HealthCheckRequest{})
		if err != nil {
			return nil, err
		}
		_, err = stream.Recv()
		return stream, err
	}
	for range 2 {
		if _, err := watches(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := watches(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "has 2 streams already") {
		t.Errorf("a third stream: %v", err)
	}
}
