package mcp_test

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/isthmus-mesh/isthmus/catalog"
	wire "github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/mcp"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/test/testkit/mcpsink"
)

// pilot is a sink that is dialled. It hands its streams out one by one.
type pilot struct {
	wire.UnimplementedResourceSinkServer
	address string
	streams chan wire.ResourceSink_EstablishResourceStreamServer
	end     chan struct{} // ends the stream there is
}

func (p *pilot) EstablishResourceStream(s wire.ResourceSink_EstablishResourceStreamServer) error {
	p.streams <- s
	select {
	case <-p.end:
	case <-s.Context().Done():
	}
	return nil
}

func newPilot(t *testing.T) *pilot {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &pilot{address: l.Addr().String(), streams: make(chan wire.ResourceSink_EstablishResourceStreamServer), end: make(chan struct{})}
	server := grpc.NewServer()
	wire.RegisterResourceSinkServer(server, p)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() { server.Stop(); serving.Wait() })
	return p
}

// begin takes the next stream, with the handshake of a sink that is dialled.
func (p *pilot) begin(t *testing.T) *mcpsink.Sink {
	t.Helper()
	stream := <-p.streams
	s, _ := mcpsink.On(t, stream, "pilot")
	trigger := s.Receive()
	if trigger.GetCollection() != wire.TriggerCollection {
		t.Fatalf("the first message is %v", trigger)
	}
	s.Send(&wire.RequestResources{
		SinkNode: &wire.SinkNode{Id: s.ID}, Collection: trigger.GetCollection(), ResponseNonce: trigger.GetNonce(),
		ErrorDetail: &status.Status{Code: int32(codes.Unimplemented)},
	})
	return s
}

// fixed is a translation to the resources of the rig.
type fixed struct{ r *rig }

func (f fixed) Step(*catalog.Snapshot, catalog.Change, bool, string) world.Update {
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	return world.Update{World: f.r.now}
}

// open makes an output of a configuration, which serves what a rig does.
func open(t *testing.T, r *rig, config func(c *mcp.Config)) output.Output {
	t.Helper()
	settings := mcp.OutputKind(mcp.Translation{
		Types: func(debounce func(string, world.Mode) world.Debounce) []world.TypeSpec {
			var types []world.TypeSpec
			for _, name := range collections {
				types = append(types, world.TypeSpec{Name: name, Whole: true, Debounce: [2]world.Debounce{debounce(name, world.WholeState), debounce(name, world.Delta)}})
			}
			return types
		},
		New: func(string) mcp.Translator { return fixed{r} },
	}).New().(*mcp.Config)
	config(settings)
	if err := settings.Validate(); err != nil {
		t.Fatal(err)
	}
	o, err := settings.Open(t.Context(), output.Env{
		RootNamespace: rootNamespace, Log: slog.New(slog.DiscardHandler), Listen: new(net.ListenConfig).Listen,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = o.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	return o
}

func metric(o output.Output, name string) (value float64) {
	for _, m := range o.Report().Metrics {
		if strings.HasPrefix(m.Name, name) {
			value += m.Value
		}
	}
	return value
}

// A sink that is dialled gets what one that dials gets, and is dialled again when its
// stream has ended: with what it holds it is sent the difference.
func TestSinkIsDialled(t *testing.T) {
	r := newRig(t, setup{})
	r.put(entries, "a/one", "1", "a/two", "2")
	p := newPilot(t)
	o := open(t, r, func(c *mcp.Config) { c.Sinks = []mcp.Sink{{Address: p.address}} })
	if o.Report().Addr != nil {
		t.Error("it listens, though it was not to")
	}
	o.Publish(nil, catalog.Change{}, true)
	s := p.begin(t)
	s.Ask(entries, true)
	holds(t, r, s, entries, true)
	clients := o.Report().Clients.Engine.Clients()
	if len(clients) != 1 || clients[0].ID != "pilot" || !strings.Contains(clients[0].Identity, p.address) || metric(o, "isthmus_mcp_sink_up") != 1 {
		t.Errorf("the clients are %+v", clients)
	}
	p.end <- struct{}{}
	r.remove(entries, "a/one")
	o.Publish(nil, catalog.Change{}, true)
	again := p.begin(t)
	again.Hold(entries, s.Of(entries))
	again.Ask(entries, true)
	for !maps.Equal(again.Of(entries).Contents, r.want(entries)) {
		m := again.Receive()
		if !m.GetIncremental() || len(m.GetResources()) > 0 {
			t.Errorf("%v came", m)
		}
		again.ACK(m, true)
	}
}

// A full state does not wait for a source that was never read, once all there were
// have been listed: no sink has anything of it.
func TestFullStateDoesNotWaitForASourceThatWasNeverRead(t *testing.T) {
	r := newRig(t, setup{incomplete: true})
	r.put(entries, "a/one", "1")
	p := newPilot(t)
	o := open(t, r, func(c *mcp.Config) { c.Sinks = []mcp.Sink{{Address: p.address}} })
	o.Publish(nil, catalog.Change{}, true)
	o.Publish(nil, catalog.Change{}, false)
	s := p.begin(t)
	s.Ask(entries, false)
	holds(t, r, s, entries, false)
}

// A sink that is not there when it is first dialled is found later, and keeps no
// other from being served.
func TestSinkThatIsNotThereYet(t *testing.T) {
	r := newRig(t, setup{})
	r.put(entries, "a/one", "1")
	absent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p, address := newPilot(t), absent.Addr().String()
	_ = absent.Close()
	o := open(t, r, func(c *mcp.Config) {
		c.Listen = "127.0.0.1:0"
		c.Sinks = []mcp.Sink{{Address: address}, {Address: p.address}}
	})
	o.Publish(nil, catalog.Change{}, true)
	s := p.begin(t)
	s.Ask(entries, false)
	holds(t, r, s, entries, false)
	if o.Report().Addr == nil || metric(o, "isthmus_mcp_sink_up") != 1 {
		t.Errorf("%g sinks are up", metric(o, "isthmus_mcp_sink_up"))
	}
}
