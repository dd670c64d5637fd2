package hostile

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// withWatchBorder has an output watch that demands a proof.
func withWatchBorder(t *testing.T) setup {
	s := withBorder(t)
	s.watch = true
	return s
}

// unprovenChecks opens watches of the health without a proof, which have to be rejected, and
// health checks without a request, of which few may wait. Afterwards a check is served.
func unprovenChecks(t *testing.T, r *room) string {
	n := size(12_000, 400)
	var next, rejected, late, full atomic.Int64
	r.beside(t, func(ctx context.Context) error {
		c := newCrowd(ctx)
		next.Store(0)
		c.send(stormers, func(ctx context.Context, _ int) error {
			conn, err := r.unprovenConn()
			if err != nil {
				return err
			}
			defer conn.Close()
			for ctx.Err() == nil && next.Add(1) <= int64(n) {
				if err := r.watchHealth(ctx, conn, &rejected); err != nil {
					return err
				}
				if err := r.checkSlowly(ctx, conn, &late, &full); err != nil {
					return err
				}
			}
			return nil
		})
		return c.wait()
	})
	conn, err := r.unprovenConn()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	await(t, "a health check to be served", func() error {
		ctx, leave := context.WithTimeout(t.Context(), until.Patience)
		defer leave()
		answer, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{})
		if err == nil && answer.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			err = fmt.Errorf("the health is %v", answer.GetStatus())
		}
		return err
	})
	return fmt.Sprintf("%d watches of the health without a proof; %d checks without a request, of which %d waited and the others were one too many", rejected.Load(), late.Load()+full.Load(), late.Load())
}

func (r *room) unprovenConn() (*grpc.ClientConn, error) {
	return grpc.NewClient(r.target(), append(r.options(), grpc.WithTransportCredentials(credentials.NewTLS(r.border.bare)))...)
}

// watchHealth watches the health, and expects to be rejected.
func (r *room) watchHealth(ctx context.Context, conn *grpc.ClientConn, rejected *atomic.Int64) error {
	watch, err := healthv1.NewHealthClient(conn).Watch(ctx, &healthv1.HealthCheckRequest{})
	if err == nil {
		_, err = watch.Recv()
	}
	if ctx.Err() == nil && (grpcstatus.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "proves no identity")) {
		return fmt.Errorf("a watch of the health without a proof: got %w", err)
	}
	rejected.Add(1)
	return nil
}

// checkSlowly opens a check and sends no request.
func (r *room) checkSlowly(ctx context.Context, conn *grpc.ClientConn, late, full *atomic.Int64) error {
	ctx, leave := context.WithTimeout(ctx, time.Minute)
	defer leave()
	check, err := openOn(ctx, conn, healthv1.Health_Check_FullMethodName)
	if err == nil {
		_, err = check.receive()
	}
	switch code := grpcstatus.Code(err); {
	case ctx.Err() != nil:
	case code == codes.DeadlineExceeded && strings.Contains(err.Error(), "no request came"):
		late.Add(1)
	case code == codes.ResourceExhausted && strings.Contains(err.Error(), "health checks under way"):
		full.Add(1)
	default:
		return fmt.Errorf("a health check without a request: got %w", err)
	}
	return nil
}
