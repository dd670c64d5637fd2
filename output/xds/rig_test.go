package xds_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/gate"
	"github.com/isthmus-mesh/isthmus/catalog/merger"
	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/secrets"
	"github.com/isthmus-mesh/isthmus/store"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/verifier"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

const (
	cds = xdsclient.CDS
	eds = xdsclient.EDS
	lds = xdsclient.LDS
	rds = xdsclient.RDS
)

const tickHost = "tick.example" // of the rig's own service

const rootNamespace = "istio-system"

// rig is everything behind the port: a catalog, its translation, the engine
// and the server, without sources and store.
type rig struct {
	step     func(*catalog.Snapshot, catalog.Change, bool, string) world.Update // envoy.Step if nil
	t        xdsclient.TB
	engine   *push.Engine
	producer *push.Producer
	server   *xds.Server
	address  string
	memory   *bufconn.Listener // instead of the address
	ledger   *xdsclient.Ledger

	builder  *catalog.Builder
	revision uint64
	complete bool
	waited   bool // for the sources that have not been listed

	store *store.Memory // of a stored rig

	ticks *xdsclient.Client // sees nothing but ticks
	tick  uint32
}

// setup is what a test may want otherwise.
type setup struct {
	engine       push.Config
	primedWithin time.Duration
	idle         []world.TypeSpec // of a producer that publishes nothing
	sources      []string
	incomplete   bool // some source has not been listed
	tls          *tls.Config
	clientCAs    func() *certs.Authorities
	demands      identity.Demands
	identity     *identity.Verifier
	secrets      *secrets.Keeper
	limits       xds.Limits
	maxAge       time.Duration
	log          *slog.Logger
	// from, if set, is where connections seem to come from.
	from func() net.Addr
	// memory has connections go through memory, so that a bubble's time is theirs.
	memory bool
}

// newRig starts a rig that serves nothing before the first apply.
func newRig(t xdsclient.TB, s setup) *rig {
	t.Helper()
	s.engine.Frame = xds.Frame
	r := &rig{
		t: t, engine: push.New(s.engine), ledger: &xdsclient.Ledger{},
		builder: catalog.NewBuilder(s.sources), complete: !s.incomplete,
	}
	r.producer = r.engine.Produce(envoy.Types(nil))
	if s.secrets != nil {
		r.step = envoy.NewTranslator().Begin(s.secrets)
	}
	if s.idle != nil {
		r.engine.Produce(s.idle)
	}
	r.server = xds.New(r.engine, xds.Options{
		Kinds: xds.Kinds{Envoy: envoy.KindEnvoy, GRPC: envoy.KindGRPC, GRPCNode: envoy.KindGRPCNode, Extensions: []string{names.DNSCluster}},
		Name:  "isthmus/test", Limits: s.limits, Secrets: s.secrets,
		Options: streams.Options{
			PrimedWithin: s.primedWithin, TLS: s.tls, ClientCAs: s.clientCAs, Demands: s.demands, Identity: cmp.Or(s.identity, verifier.New(t, identity.Config{})), MaxConnectionAge: s.maxAge, Log: s.log,
		},
	})
	r.start(r.listen(s))
	return r
}

func (r *rig) listen(s setup) net.Listener {
	r.t.Helper()
	if s.memory {
		r.memory = bufconn.Listen(64 << 10)
		if s.from != nil {
			return &disguised{r.memory, s.from}
		}
		return r.memory
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatalf("listen: %v", err)
	}
	r.address = listener.Addr().String()
	if s.from != nil {
		return &disguised{listener, s.from}
	}
	return listener
}

// disguised makes connections seem to come from elsewhere.
type disguised struct {
	net.Listener
	from func() net.Addr
}

func (l *disguised) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return disguise{conn, l.from()}, err
}

type disguise struct {
	net.Conn
	from net.Addr
}

func (d disguise) RemoteAddr() net.Addr { return d.from }

func (r *rig) start(listener net.Listener) {
	ctx, stop := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { r.engine.Run(ctx) })
	parts.Go(func() { _ = r.server.Serve(listener) })
	r.t.Cleanup(func() {
		stop()
		limit, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		r.server.Stop(limit)
		parts.Wait()
	})
}

// apply makes events the next step of the catalog and publishes it.
func (r *rig) apply(events ...model.Event) {
	r.revision++
	change := r.builder.Apply(r.revision, events)
	r.publish(change)
}

func (r *rig) publish(change catalog.Change) {
	snapshot := r.builder.Snapshot()
	change.Committed = time.Now()
	step := envoy.Step
	if r.step != nil {
		step = r.step
	}
	u := step(snapshot, change, r.complete, rootNamespace)
	u.Waited = r.waited
	r.producer.Publish(u)
}

// newStoredRig is a rig that is fed from a store, through the gate that waits
// for the sources: the first is required, the others are not.
func newStoredRig(t xdsclient.TB, s setup, wait time.Duration) *rig {
	t.Helper()
	r := newRig(t, s)
	r.store = store.NewMemory(store.Config{})
	gate := gate.New(s.sources[:1], s.sources[1:], wait, func(s *catalog.Snapshot, change catalog.Change, complete bool) {
		change.Committed = time.Now()
		r.producer.Publish(envoy.Step(s, change, complete, rootNamespace))
	})
	ctx, stop := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() {
		_ = merger.Run(r.store.Watch(ctx, model.Filter{}), catalog.Order{Sources: s.sources}, gate.Publish)
	})
	t.Cleanup(func() {
		stop()
		gate.Stop()
		run.Wait()
	})
	return r
}

// put adds or replaces records, in one step.
func (r *rig) put(records ...model.Record) {
	if r.store != nil {
		r.commit(false, records)
		return
	}
	r.apply(upserts(records...)...)
}

// remove deletes records, in one step.
func (r *rig) remove(records ...model.Record) {
	if r.store != nil {
		r.commit(true, records)
		return
	}
	r.apply(deletes(records...)...)
}

func (r *rig) commit(remove bool, records []model.Record) {
	r.t.Helper()
	var c model.Commit
	for _, record := range records {
		stored, _ := r.store.Get(record.Ref)
		record.UID, record.Revision = stored.UID, stored.Revision
		c.Writes = append(c.Writes, model.Write{Record: record, Delete: remove})
	}
	if _, err := r.store.Commit(context.Background(), c); err != nil {
		r.t.Fatalf("commit: %v", err)
	}
}

func upserts(records ...model.Record) (events []model.Event) {
	for _, record := range records {
		events = append(events, model.Upsert{Record: record})
	}
	return events
}

func deletes(records ...model.Record) (events []model.Event) {
	for _, record := range records {
		events = append(events, model.Delete{Record: record})
	}
	return events
}

// dispatched returns when the engine has notified every subscriber of all that was
// published so far. Steps are dispatched one after the other: when the second
// of two further ones arrives, the first, and all before, are over.
func (r *rig) dispatched() {
	r.t.Helper()
	const namespace, host = "tick", tickHost
	name := names.Cluster(host, 80)
	if r.ticks == nil {
		r.put(only(service(namespace, host), "."))
		r.ticks = r.delta("ticks", namespace)
		r.ticks.Subscribe(eds, name)
	}
	for range 2 {
		r.tick++
		e := endpoint(namespace, host, "tick", "10.99.0.1")
		e.Spec = model.Endpoint{Address: "10.99.0.1", Weight: r.tick}
		r.put(e)
		r.ticks.Await(fmt.Sprintf("tick %d", r.tick), func(s *xdsclient.State) bool {
			return weightOf(s, name) == r.tick
		})
	}
}

// await returns once a condition holds that nothing tells of.
func (r *rig) await(what string, holds func() bool) {
	r.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(until.Patience); !holds(); <-tick.C {
		if time.Now().After(end) {
			r.t.Fatalf("no %s within %s", what, until.Patience)
		}
	}
}

func (r *rig) rejectedFor(cause string) uint64 {
	r.t.Helper()
	for name, n := range r.server.Rejected() {
		if name == cause {
			return n
		}
	}
	r.t.Fatalf("there is no cause %q", cause)
	return 0
}

// awaited returns what comes out of a channel next.
func awaited[T any](t xdsclient.TB, what string, from <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-from:
	case <-time.After(until.Patience):
		t.Fatalf("no %s within %s", what, until.Patience)
	}
	return got
}

// delta connects an Envoy of the delta variant, and sotw one of the state of the world.
func (r *rig) delta(name, namespace string) *xdsclient.Client {
	r.t.Helper()
	return r.deltaWith(xdsclient.Config{Node: xdsclient.Node(name, namespace, "envoy")})
}

func (r *rig) sotw(name, namespace string) *xdsclient.Client {
	r.t.Helper()
	return r.sotwWith(xdsclient.Config{Node: xdsclient.Node(name, namespace, "envoy")})
}

func (r *rig) deltaWith(c xdsclient.Config) *xdsclient.Client {
	r.t.Helper()
	c.Ledger, c.Deadline = r.ledger, cmp.Or(c.Deadline, until.Patience)
	return xdsclient.NewDelta(r.t, r.dial(), c)
}

func (r *rig) sotwWith(c xdsclient.Config) *xdsclient.Client {
	r.t.Helper()
	c.Ledger, c.Deadline = r.ledger, cmp.Or(c.Deadline, until.Patience)
	return xdsclient.NewSotW(r.t, r.dial(), c)
}

// dial opens a connection of its own, so that no client slows another on the wire.
func (r *rig) dial(options ...grpc.DialOption) *grpc.ClientConn {
	r.t.Helper()
	options = append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, options...)
	if r.memory != nil {
		memory := grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return r.memory.DialContext(ctx) })
		options = append([]grpc.DialOption{memory}, options...)
	}
	conn, err := grpc.NewClient("passthrough:///"+r.address, options...)
	if err != nil {
		r.t.Fatalf("dial: %v", err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	if r.memory == nil { // in a bubble days may pass
		r.endInTime(conn)
	}
	return conn
}

// endInTime closes a connection that lasts longer than any test means it to. So a
// test that receives what never comes fails by itself, and ends nothing but itself.
func (r *rig) endInTime(conn *grpc.ClientConn) {
	late := time.AfterFunc(until.Patience, func() { _ = conn.Close() })
	r.t.Cleanup(func() { late.Stop() })
}
