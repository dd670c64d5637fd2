package hostile

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// unknownNames subscribes to load assignments of clusters that nobody knows.
//
// Two million names are more than there is room for in the memory that the
// program has here. The last one gets an error; the others cost less than a
// hundred bytes a name beside the name, and a change takes its usual time.
func unknownNames(t *testing.T, r *room) string {
	const clients, names = 200, 10_000
	n := size(clients, 5)
	r.beside(t, func(ctx context.Context) error {
		conns, err := r.attackers(10)
		if err != nil {
			return err
		}
		defer conns.close()
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		c, answered := newCrowd(ctx), make(chan struct{}, 2*n)
		c.send(n, func(ctx context.Context, i int) error {
			s, err := conns.open(ctx, i, delta)
			if err != nil {
				return err
			}
			_ = s.SendMsg(marshal(&discoveryv3.DeltaDiscoveryRequest{
				Node: xdsclient.Node(fmt.Sprint("unknown-", i), "shop", "envoy"), TypeUrl: xdsclient.EDS, ResourceNamesSubscribe: unknownHosts(i, names),
			}))
			for first := true; ; first = false {
				text, err := s.receive()
				if status.Code(err) == codes.ResourceExhausted {
					answered <- struct{}{}
					return nil
				}
				if err != nil {
					return unlessOver(ctx, err)
				}
				if first {
					answered <- struct{}{}
				}
				_ = s.SendMsg(ackOf(text))
			}
		})
		err = awaitAnswers(ctx, answered, n)
		if err == nil {
			_, err = r.churn(ctx, size(4*time.Second, time.Second))
		}
		stop()
		return errors.Join(err, unlessStopped(c.wait()))
	})
	return fmt.Sprintf("%d clients with %d unknown names each", n, names)
}

// unknownHosts are names that no service and no other client has.
func unknownHosts(client, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("outbound|%d||unknown-%d-%d.example.com", port, client, i)
	}
	return names
}

// awaitAnswers waits until so many clients have been answered.
func awaitAnswers(ctx context.Context, answered <-chan struct{}, n int) error {
	for i := range n {
		select {
		case <-answered:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d clients were answered", i, n)
		}
	}
	return nil
}
