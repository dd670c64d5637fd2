package mcp_test

import (
	"context"
	"fmt"
	"net"
	"testing"

	"google.golang.org/grpc"
	mcpapi "istio.io/api/mcp/v1alpha1"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/source"
	sourcemcp "github.com/isthmus-mesh/isthmus/source/mcp"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
)

// one is a peer of which the test has the one stream.
type one struct {
	mcp.UnimplementedResourceSourceServer
	streams chan grpc.BidiStreamingServer[mcp.RequestResources, mcp.Resources]
	over    chan struct{}
}

// EstablishResourceStream implements the service.
func (o *one) EstablishResourceStream(s grpc.BidiStreamingServer[mcp.RequestResources, mcp.Resources]) error {
	o.streams <- s
	<-o.over
	return nil
}

// One service of 5,000 changes, one endpoint of its 17, and the peer sends all of them:
// from the answer to its ACK.
func BenchmarkFullStateInWhichOneChanged(b *testing.B) {
	for _, changed := range []int{0, 1, 5000} {
		b.Run(fmt.Sprintf("changed=%d", changed), func(b *testing.B) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			peer := &one{streams: make(chan grpc.BidiStreamingServer[mcp.RequestResources, mcp.Resources], 1), over: make(chan struct{})}
			server := grpc.NewServer()
			mcp.RegisterResourceSourceServer(server, peer)
			go func() { _ = server.Serve(listener) }()
			defer server.Stop()
			defer close(peer.over)
			c := sourcemcp.Config{Address: listener.Addr().String(), Collections: []string{entries}}
			super := supervise.New(sourceName, c.Open(source.Env{Instance: "here", Name: sourceName}), store.NewMemory(store.Config{}), supervise.Config{})
			ctx, cancel := context.WithCancel(b.Context())
			ended := make(chan error, 1)
			go func() { ended <- super.Run(ctx) }()
			defer func() { cancel(); <-ended }()
			stream := <-peer.streams
			if _, err := stream.Recv(); err != nil {
				b.Fatal(err)
			}
			state := &mcp.Resources{Collection: entries, Nonce: "1"}
			for i := range 5000 {
				state.Resources = append(state.Resources, service(i, 0))
			}
			bytes := 0
			for _, r := range state.GetResources() {
				bytes += len(r.GetBody().GetValue())
			}
			b.SetBytes(int64(bytes))
			send := func() {
				if err := stream.Send(state); err != nil {
					b.Fatal(err)
				}
				if q, err := stream.Recv(); err != nil || q.GetErrorDetail() != nil {
					b.Fatal(q, err)
				}
			}
			send()
			n := 0
			for b.Loop() {
				n++
				for i := range changed {
					state.Resources[i] = service(i, n)
				}
				send()
			}
		})
	}
}

// service is one with 17 endpoints, of which the first depends on the round.
func service(i, round int) *mcpapi.Resource {
	addresses := []string{fmt.Sprintf("10.200.%d.%d", round/250%250, round%250)}
	for n := range 16 {
		addresses = append(addresses, fmt.Sprintf("10.%d.%d.%d", i/250, i%250, n))
	}
	return entry(fmt.Sprintf("shop/service-%d", i), fmt.Sprint(round), addresses...)
}
