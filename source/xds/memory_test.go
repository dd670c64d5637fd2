package xds_test

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/budget"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/source/xds"
)

// wide is a ServiceEntry of so many endpoints, which are two bytes each.
func wide(name string, endpoints int) *anypb.Any {
	spec := &networking.ServiceEntry{}
	for range endpoints {
		spec.Endpoints = append(spec.Endpoints, &networking.WorkloadEntry{})
	}
	return wrap(name, spec)
}

// What servers may have together is divided: the more there are, the less each has.
func TestServersHaveLessTheMoreThereAre(t *testing.T) {
	bubble(t, manner{}, func(r *rig) {
		whole := budget.New(2 << 20)
		r.memory = whole.Share("one")
		r.serve("shop/cart", "10.0.0.1")
		r.put("ServiceEntry", "shop/more", padded("shop/more", 200_000))
		r.mirror("ServiceEntry")
		r.is(source.StateLive, "")
		before := r.stored()
		for i := range 9 {
			whole.Share("another" + strconv.Itoa(i)).Keep()
		}
		r.put("ServiceEntry", "shop/most", padded("shop/most", 1000))
		r.pass(10 * time.Millisecond)
		r.is(source.StateStale, "take more than 104857 bytes, the limit")
		if now := r.stored(); now != before {
			r.Errorf("stored:\n%s\n\nbefore:\n%s", now, before)
		}
	})
}

// padded is one of so many bytes more.
func padded(name string, size int) *anypb.Any {
	body := service(name, "10.0.0.1")
	var m mcpapi.Resource
	if err := body.UnmarshalTo(&m); err != nil {
		panic(err)
	}
	m.Metadata.Annotations = map[string]string{"a": strings.Repeat("x", size)}
	return encode(&m)
}

// What is held counts with what the records take, which may be many times its text.
// What was stored before stays.
func TestServerThatSaysTooMuchIsStale(t *testing.T) {
	for name, more := range map[string]func(name string) *anypb.Any{
		"fields": func(name string) *anypb.Any { return wide(name, 1000) },
		"text":   func(name string) *anypb.Any { return padded(name, 100_000) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, manner{}, func(r *rig) {
				r.memory = budget.New(1 << 20)
				r.serve("shop/cart", "10.0.0.1")
				r.mirror("ServiceEntry")
				for i := range 4 {
					name := "shop/more-" + strconv.Itoa(i)
					r.put("ServiceEntry", name, more(name))
					r.pass(time.Second)
				}
				r.is(source.StateLive, "")
				before := r.stored()
				for i := range 2 {
					name := "shop/most-" + strconv.Itoa(i)
					r.put("ServiceEntry", name, more(name))
					r.pass(10 * time.Millisecond)
				}
				r.is(source.StateStale, "take more than 1048576 bytes, the limit")
				if now := r.stored(); !strings.HasPrefix(now, before) {
					r.Errorf("stored:\n%s\n\nbefore:\n%s", now, before)
				}
			})
		})
	}
}

// Several copies of a message are in memory while it is read, so one is a part of what
// a source may have.
func TestMessageThatIsTooLargeIsNotReceived(t *testing.T) {
	variants(t, func(r *rig) {
		r.memory = budget.New(1 << 20)
		r.serve("shop/cart", "10.0.0.1")
		r.put("ServiceEntry", "shop/padded", padded("shop/padded", 200_000))
		r.mirror("ServiceEntry")
		r.is(source.StateLive, "")
		before := r.stored()
		r.put("ServiceEntry", "shop/padded", padded("shop/padded", 300_000))
		r.pass(10 * time.Millisecond)
		r.is(source.StateStale, "a message may have 262144 bytes here")
		if now := r.stored(); now != before {
			r.Errorf("stored:\n%s\n\nbefore:\n%s", now, before)
		}
	})
}

// flood is a server that sends one message after another, whatever is answered.
type flood struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	sent atomic.Int64
}

// DeltaAggregatedResources sends until the stream ends.
func (f *flood) DeltaAggregatedResources(s discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	for {
		m := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: newer, Nonce: strconv.FormatInt(f.sent.Load(), 10), Resources: []*discoveryv3.Resource{
			{Name: "shop/cart", Version: "1", Resource: padded("shop/cart", 2<<20)},
		}}
		if err := s.Send(m); err != nil {
			return err
		}
		f.sent.Add(1)
	}
}

// While a message waits for memory, the next one is not received.
func TestOneMessageIsReceivedAtATime(t *testing.T) {
	bubble(t, manner{}, func(r *rig) {
		flood, server, listener := &flood{}, grpc.NewServer(), bufconn.Listen(64<<10)
		discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, flood)
		var serving sync.WaitGroup
		serving.Go(func() { _ = server.Serve(listener) })
		defer serving.Wait()
		defer server.Stop()
		r.memory = budget.New(16 << 20)
		give, err := r.memory.Take(r.Context(), 16<<20)
		if err != nil {
			r.Fatal(err)
		}
		defer give()
		ctx, stop := context.WithCancel(r.Context())
		src := xds.New(xds.Config{Address: "127.0.0.1:15010", Types: []string{"ServiceEntry"}}, source.Env{Memory: r.memory})
		src.DialWith(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) })
		var running sync.WaitGroup
		running.Go(func() { _ = supervise.New("other", src, r.store, supervise.Config{}).Run(ctx) })
		defer running.Wait()
		defer stop()
		r.pass(time.Second)
		// The first is there, and the second stands in what the server itself holds.
		if n := flood.sent.Load(); n != 2 {
			r.Errorf("%d messages were sent while the first one waits", n)
		}
	})
}
