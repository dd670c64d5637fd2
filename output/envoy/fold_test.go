package envoy

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// checkFolds runs histories in which clients fold what they are sent.
func checkFolds[H interface {
	run()
	end()
}](t *testing.T, begin func(*rapid.T) H) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		var thrown any // rapid has to see it outside of the bubble
		synctest.Test(t, func(*testing.T) {
			defer func() { thrown = recover() }()
			h := begin(rt)
			defer func() { h.end() }()
			h.run()
		})
		if text, broken := thrown.(foldBroken); broken {
			rt.Fatal(string(text))
		}
		if thrown != nil {
			panic(thrown)
		}
	})
}

// foldBroken is thrown where a client has something else than it should.
type foldBroken string

// folding is an engine and what happened to its clients.
type folding struct {
	engine   *push.Engine
	producer *push.Producer
	stop     func()
	diary    []string
}

// serve begins an engine.
func (f *folding) serve() {
	f.engine = push.New(push.Config{Order: xds.Order(), Frame: xds.Frame, Workers: 1})
	f.producer = f.engine.Produce(Types(nil))
	ctx, cancel := context.WithCancel(context.Background())
	engine, running := f.engine, sync.WaitGroup{}
	running.Go(func() { engine.Run(ctx) })
	f.stop = func() {
		cancel()
		running.Wait()
	}
}

func (f *folding) end() { f.stop() }

func (f *folding) log(format string, args ...any) {
	f.diary = append(f.diary, fmt.Sprintf(format, args...))
}

func (f *folding) broken(format string, args ...any) {
	panic(foldBroken(fmt.Sprintf(format, args...) + "; what happened:\n" + strings.Join(f.diary, "\n")))
}

// folder is a client over delta.
type folder struct {
	*folding

	name string
	sub  *push.Subscriber // nil while it is away
}

func (f *folder) connect(client world.Client) {
	f.log("%s connects", f.name)
	f.sub = f.engine.Connect(push.Info{ID: f.name}, client)
}

func (f *folder) leave() {
	if f.sub != nil {
		f.log("%s leaves", f.name)
		f.sub.Close()
		f.sub = nil
	}
}

func (f *folder) typ(r world.Row) world.Type { return f.producer.Type(r) }

func (f *folder) request(r session.Request) {
	r.Mode = world.Delta
	if err := f.sub.Request(r); err != nil {
		f.broken("%v", err)
	}
	synctest.Wait()
}

// take has the client receive what there is, and reports whether there was any.
func (f *folder) take(receive func(*session.Response)) (busy bool) {
	for f.sub != nil {
		synctest.Wait()
		select {
		case r, open := <-f.sub.Out():
			if !open {
				f.broken("the stream of %s was ended", f.name)
			}
			busy = true
			receive(r)
		default:
			return busy
		}
	}
	return busy
}

// read is a response as it comes over the wire.
func (f *folder) read(r *session.Response) *discoveryv3.DeltaDiscoveryResponse {
	f.sub.Sent(r)
	m := &discoveryv3.DeltaDiscoveryResponse{}
	var wire []byte
	for _, res := range r.Resources {
		wire = append(append(wire, res.Heads[world.Delta]...), res.Joined().Body...)
	}
	if err := proto.Unmarshal(wire, m); err != nil {
		f.broken("%s cannot read what it is sent: %v", f.name, err)
	}
	m.RemovedResources = append(m.RemovedResources, r.Removed...)
	return m
}

func (f *folder) unpack(a *anypb.Any, into proto.Message) {
	if err := a.UnmarshalTo(into); err != nil {
		f.broken("%s: %v", f.name, err)
	}
}
