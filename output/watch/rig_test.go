package watch_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	api "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/catalog"
	proofs "github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/events"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/watch"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/store"
	"github.com/isthmus-mesh/isthmus/test/testkit/verifier"
)

const rootNamespace = "istio-system"

// rig is a server of a store, with sources that the test steers.
type rig struct {
	testing.TB
	store  *store.Memory
	server *watch.Server
	events *events.Log
	conn   *grpc.ClientConn // of this machine
	client api.ResourceServiceClient

	mu     sync.Mutex
	states []source.Status
	primed map[string]bool
}

// setup is what a test may want otherwise.
type setup struct {
	store    store.Config
	sources  []string // live and primed from the start
	unready  bool     // nothing is published yet
	limits   watch.Limits
	merged   store.Config
	tls      *tls.Config // with certificates of clients
	verifier *proofs.Verifier
	dial     credentials.TransportCredentials
}

func newRig(tb testing.TB, s setup) *rig {
	tb.Helper()
	r := &rig{TB: tb, store: store.NewMemory(s.store), events: events.New(), primed: map[string]bool{}}
	for _, name := range s.sources {
		r.states = append(r.states, source.Status{Name: name, State: source.StateLive, Since: time.Unix(1e9, 0)})
		r.primed[name] = true
	}
	options := watch.Options{Limits: s.limits, Merged: s.merged}
	options.TLS = s.tls
	options.Identity = cmp.Or(s.verifier, verifier.New(tb, proofs.Config{}))
	r.server = watch.New(output.Env{Records: marked{r.store, r}, States: r.status, Events: r.events}, options)
	if !s.unready {
		r.server.Publish(catalog.Empty(), catalog.Change{Waited: true})
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.server.Follow(ctx) })
	running.Go(func() {
		if err := r.server.Run(ctx, listener, time.Second); err != nil {
			tb.Errorf("the server ended: %v", err)
		}
	})
	tb.Cleanup(func() {
		cancel()
		running.Wait()
	})
	if s.dial == nil {
		s.dial = insecure.NewCredentials()
	}
	r.conn = r.dial(listener.Addr().String(), s.dial)
	r.client = api.NewResourceServiceClient(r.conn)
	return r
}

// dial connects with the smallest windows, so that a reader that reads nothing is soon felt.
func (r *rig) dial(address string, with credentials.TransportCredentials) *grpc.ClientConn {
	r.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(with),
		grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(4<<20), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20)))
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (r *rig) status() []source.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]source.Status(nil), r.states...)
}

// marked is a store that has the marks of the sources of the rig, and no others.
type marked struct {
	*store.Memory
	rig *rig
}

func (m marked) Get(ref model.Ref) (model.Record, bool) {
	if ref.Kind != model.KindSource {
		return m.Memory.Get(ref)
	}
	m.rig.mu.Lock()
	defer m.rig.mu.Unlock()
	return model.Record{Ref: ref, Spec: model.SourceMark{}}, m.rig.primed[ref.Source]
}

// set changes the state of a source, as a supervisor does.
func (r *rig) set(name string, state source.State, reason string, primed bool) {
	r.mu.Lock()
	found := false
	for i := range r.states {
		if r.states[i].Name == name {
			r.states[i].State, r.states[i].Reason, r.states[i].Since = state, reason, time.Now()
			found = true
		}
	}
	if !found {
		r.states = append(r.states, source.Status{Name: name, State: state, Reason: reason, Since: time.Now()})
	}
	r.primed[name] = primed
	r.mu.Unlock()
	r.events.Add(events.Event{Kind: events.State, Source: name, Text: "is " + string(state)})
}
