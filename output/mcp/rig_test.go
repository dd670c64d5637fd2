package mcp_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"iter"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"

	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/output/mcp"
	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/test/testkit/mcpsink"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/verifier"
)

// The collections of the rig.
const (
	entries  = "istio/networking/v1alpha3/serviceentries"
	sidecars = "istio/networking/v1alpha3/sidecars"
)

var collections = []string{entries, sidecars}

const rootNamespace = "istio-system"

// served holds the content of resources by collection and name.
type served struct {
	contents []map[string]*subject // by row
	complete bool
}

type subject struct {
	row           world.Row
	name, content string
}

type slot struct {
	row  world.Row
	name string
}

func (s *subject) Slot() any { return slot{s.row, s.name} }

func (s *subject) Encode() world.Encoded {
	version := world.VersionOf([]byte(s.content))
	body, err := proto.Marshal(&mcpapi.Resource{
		Metadata: &mcpapi.Metadata{Name: s.name, Version: version.String()},
		Body:     &anypb.Any{TypeUrl: "type.googleapis.com/test", Value: []byte(s.content)},
	})
	if err != nil {
		panic(err)
	}
	return world.Encoded{Name: s.name, Version: version, Body: body}
}

func (w *served) View(world.Row, world.Client) world.View { return "all" }

func (w *served) Names(_ world.View, r world.Row) iter.Seq[string] { return maps.Keys(w.contents[r]) }

func (w *served) Find(_ world.View, r world.Row, name string) (world.Subject, bool) {
	s, ok := w.contents[r][name]
	return s, ok
}

func (w *served) Complete() bool { return w.complete }

// rig is the server with an engine and a producer of resources of its own.
type rig struct {
	t        mcpsink.TB
	engine   *push.Engine
	producer *push.Producer
	server   *mcp.Server
	memory   *bufconn.Listener
	address  string
	security credentials.TransportCredentials
	stop     func()

	mu  sync.Mutex
	now *served
}

// setup is what a test may want otherwise.
type setup struct {
	debounce     world.Debounce
	incomplete   bool
	limits       mcp.Limits
	largest      int
	tls          *tls.Config
	clientCAs    func() *certs.Authorities
	trustDomains []string
	verifier     *identity.Verifier
	log          *slog.Logger
	tcp          bool
	collections  []string // nil for those of the rig
	primedWithin time.Duration
}

func newRig(t mcpsink.TB, s setup) *rig {
	t.Helper()
	config := mcp.EngineConfig()
	config.Log = s.log
	if s.largest > 0 {
		config.Largest, config.Budget = s.largest, s.largest*3/4
	}
	if s.collections == nil {
		s.collections = collections
	}
	r := &rig{
		t: t, engine: push.New(config), security: insecure.NewCredentials(),
		now: &served{make([]map[string]*subject, len(s.collections)), !s.incomplete},
	}
	var types []world.TypeSpec
	for _, name := range s.collections {
		types = append(types, world.TypeSpec{Name: name, Whole: true, Debounce: [2]world.Debounce{world.WholeState: s.debounce}})
	}
	r.producer = r.engine.Produce(types)
	r.server = mcp.New(r.engine, mcp.Options{
		RootNamespace: rootNamespace, Limits: s.limits,
		Options: streams.Options{PrimedWithin: s.primedWithin, TLS: s.tls, ClientCAs: s.clientCAs, Demands: identity.Demands{TrustDomains: s.trustDomains}, Identity: cmp.Or(s.verifier, verifier.New(t, identity.Config{})), Log: s.log},
	})
	r.start(r.listen(s.tcp))
	return r
}

func (r *rig) listen(tcp bool) net.Listener {
	r.t.Helper()
	if !tcp {
		r.memory = bufconn.Listen(1 << 20)
		return r.memory
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatalf("listen: %v", err)
	}
	r.address = l.Addr().String()
	return l
}

func (r *rig) start(l net.Listener) {
	ctx, stop := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { r.engine.Run(ctx) })
	parts.Go(func() { _ = r.server.Serve(l) })
	r.stop = sync.OnceFunc(func() {
		stop()
		limit, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		r.server.Stop(limit)
		parts.Wait()
	})
	r.t.Cleanup(r.stop)
}

// put makes resources part of the world, given as names and contents in turns.
func (r *rig) put(collection string, pairs ...string) {
	contents := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		contents[pairs[i]] = pairs[i+1]
	}
	r.change(collection, contents, nil)
}

func (r *rig) remove(collection string, names ...string) { r.change(collection, nil, names) }

// change makes the next step of the world.
func (r *rig) change(collection string, put map[string]string, gone []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	row := world.Row(0)
	if collection == sidecars {
		row = 1
	}
	next := &served{slices.Clone(r.now.contents), r.now.complete}
	if next.contents[row] = maps.Clone(r.now.contents[row]); next.contents[row] == nil {
		next.contents[row] = map[string]*subject{}
	}
	u := world.Update{World: next, Committed: time.Now()}
	for name, content := range put {
		next.contents[row][name] = &subject{row, name, content}
		u.Changed = append(u.Changed, world.Changed{Row: row, Name: name})
	}
	for _, name := range gone {
		delete(next.contents[row], name)
		u.Changed = append(u.Changed, world.Changed{Row: row, Name: name})
	}
	r.now = next
	r.producer.Publish(u)
}

// finish says that every source has been listed.
func (r *rig) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = &served{r.now.contents, true}
	r.producer.Publish(world.Update{World: r.now})
}

// want is what a sink should hold of a collection.
func (r *rig) want(collection string) map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	row := 0
	if collection == sidecars {
		row = 1
	}
	contents := map[string]string{}
	for name, s := range r.now.contents[row] {
		contents[name] = s.content
	}
	return contents
}

// dial opens a connection of its own.
func (r *rig) dial() *grpc.ClientConn {
	r.t.Helper()
	options := []grpc.DialOption{grpc.WithTransportCredentials(r.security)}
	if r.memory != nil {
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return r.memory.DialContext(ctx) }))
	}
	conn, err := grpc.NewClient("passthrough:///"+r.address, options...)
	if err != nil {
		r.t.Fatalf("dial: %v", err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// sink opens a stream on a connection of its own.
func (r *rig) sink(id string) *mcpsink.Sink {
	r.t.Helper()
	return mcpsink.Dial(r.t, r.dial(), id)
}

// dispatched returns once the engine has taken all that was put so far. A sink that
// comes before that is sent what there was.
func (r *rig) dispatched() {
	r.t.Helper()
	s := r.sink("witness")
	for _, collection := range collections {
		s.Ask(collection, true)
	}
	for _, collection := range collections {
		for !maps.Equal(s.Of(collection).Contents, r.want(collection)) {
			s.ACK(s.Receive(), true)
		}
	}
}

// status is how a sink stands with a collection.
func (r *rig) status(id, collection string) (session.TypeStatus, bool) {
	for _, c := range r.engine.Clients() {
		for _, s := range c.Types {
			if c.ID == id && s.Type == collection {
				return s, true
			}
		}
	}
	return session.TypeStatus{}, false
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

// isBad reports whether a resource is one that sinks NACK.
func isBad(res *mcpapi.Resource) bool { return string(res.GetBody().GetValue()) == "bad" }
