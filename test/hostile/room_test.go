package hostile

import (
	"context"
	"crypto/tls"
	"fmt"
	"iter"
	"maps"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	api "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// room is where one attack happens: a registry, the program over it, and a good
// client of it.
type room struct {
	setup
	registry *registry
	server   *server
	good     *good
	figures  *figures
	sink     *goodSink    // where MCP is attacked
	next     int          // service to change
	followed atomic.Int64 // changes beside the attack
}

// setup is what differs between rooms.
type setup struct {
	listen   string      // default: a free port of loopback
	tls      *tls.Config // of clients; nil without TLS
	files    string      // of the listener's certificate, as the configuration has it
	border   *border     // rejects clients without a proof, and takes the good one
	identity string      // more proofs of clients, as the configuration has them
	dataDir  string
	sources  string // more of them
	center   *center
	peers    *peers
	teller   *teller
	mcp      bool // it is MCP that is attacked
	watch    bool // it is the watch of records that is attacked
	// listener is the address of a source that its registry dials; empty without one.
	listener string
}

const configuration = `
sources:
- name: files
  required: true
  file: {path: %q}
%s
outputs:
  xds: {listen: %q%s}
%s
%s
store: {dataDir: %q}
admin: {listen: 127.0.0.1:0}
`

// open prepares a room; the good client has everything.
func open(t *testing.T, s setup, f *figures) *room {
	t.Helper()
	if s.listen == "" {
		s.listen = "127.0.0.1:0"
	}
	r := &room{setup: s, registry: newRegistry(t), figures: f}
	r.serve(t)
	r.good = befriend(t, "good", r)
	if s.mcp {
		r.sink = befriendSink(t, r)
	}
	return r
}

// serve starts the program, which may have run before.
func (r *room) serve(t *testing.T) {
	t.Helper()
	outputs := ""
	if r.mcp {
		outputs = "  mcp: {listen: 127.0.0.1:0, debounce: {quiet: 0s}}"
	}
	if r.watch {
		outputs = fmt.Sprintf("  watch: {listen: 127.0.0.1:0%s}", r.files)
	}
	r.server = serve(t, fmt.Sprintf(configuration, r.registry.dir, r.sources, r.listen, r.files, outputs, r.identity, r.dataDir))
}

// target is what attackers dial by gRPC.
func (r *room) target() string {
	if r.mcp || r.watch {
		return "passthrough:///" + r.attacked()
	}
	return r.xdsTarget()
}

// xdsTarget is what the good client dials.
func (r *room) xdsTarget() string {
	if strings.HasPrefix(r.listen, "unix://") {
		return r.listen
	}
	return "passthrough:///" + r.server.xds
}

// connect opens a connection to the port under attack that says nothing yet.
func (r *room) connect(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", r.attacked())
}

// attacked is the address under attack.
func (r *room) attacked() string {
	switch {
	case r.mcp:
		return r.server.mcp
	case r.watch:
		return r.server.watch
	}
	return r.server.xds
}

// method is that of a stream of everything.
func (r *room) method() string {
	switch {
	case r.mcp:
		return mcpStream
	case r.watch:
		return watchList
	}
	return delta
}

// everything are the requests of a client that asks for all there is.
func (r *room) everything(id string) [][]byte {
	switch {
	case r.mcp:
		return allCollections(id)
	case r.watch:
		return [][]byte{marshal(&api.WatchListRequest{})}
	}
	return everything(id)
}

// goods is how many clients are good.
func (r *room) goods() int {
	if r.mcp {
		return 2
	}
	return 1
}

// quiet has the good client follow changes while nothing else happens.
func (r *room) quiet(t *testing.T) {
	t.Helper()
	for range size(10, 3) {
		r.figures.quiet = append(r.figures.quiet, r.change(t))
	}
}

// change changes a service, and returns how long it took until the good client
// had ACKed it. The second half of the services is left to attacks.
func (r *room) change(t *testing.T) time.Duration {
	t.Helper()
	service := r.next % (services / 2)
	r.next++
	weight, at, err := r.registry.change(service)
	if err != nil {
		t.Fatal(err)
	}
	return r.good.follow(clusterName(service), weight, at)
}

// fewest is how many changes must be followed beside an attack for it to show anything.
const fewest = 2

// beside has the good client follow changes until an attack is over, and asks
// all the while whether the program is ready. Where changes are slow, for the machine is
// busy, the attack is made again until there were enough of them.
func (r *room) beside(t *testing.T, attack func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*until.Patience)
	over, asked := make(chan error, 1), make(chan error, 1)
	go func() {
		err := attack(ctx)
		for err == nil && ctx.Err() == nil && r.followed.Load() < fewest {
			err = attack(ctx)
		}
		over <- err
	}()
	go func() { asked <- r.keepAsking(ctx) }()
	ended := false
	defer func() { // also if the good client ends the test
		cancel()
		if !ended {
			<-over
		}
		if err := <-asked; err != nil {
			t.Errorf("beside the attack: %v", err)
		}
	}()
	for {
		r.figures.beside = append(r.figures.beside, r.change(t))
		r.followed.Add(1)
		select {
		case err := <-over:
			ended = true
			if err != nil {
				t.Errorf("the attack did not come off: %v", err)
			}
			return
		default:
		}
	}
}

// keepAsking asks for readiness several times a second until ctx ends.
func (r *room) keepAsking(ctx context.Context) error {
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for {
		asked := time.Now()
		if err := r.server.readyz(); err != nil {
			return err
		}
		r.figures.ready = append(r.figures.ready, time.Since(asked))
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		}
	}
}

// settle waits until nothing of an attack is left, and holds the good client
// to what the registry says. Before is what the program's metrics were.
func (r *room) settle(t *testing.T, before float64) {
	t.Helper()
	await(t, "the program to be as it was", func() error {
		if err := r.server.readyz(); err != nil {
			return err
		}
		m := r.server.metrics(t)
		if n := m.Sum("isthmus_clients"); int(n) != r.goods() {
			return fmt.Errorf("it counts %v clients; %d are good", n, r.goods())
		}
		if n := m.Sum("go_goroutines"); n > before+spareGoroutines {
			return fmt.Errorf("it has %v goroutines and had %v", n, before)
		}
		return nil
	})
	r.change(t)
	r.good.awaitAll(r.registry.says())
	r.good.mustHaveLostNothing(t, r.lasting())
	if r.mcp {
		r.sink.awaitAll(t, r.registry.says())
	}
	if said := r.server.log.panics(); said != "" {
		t.Errorf("there was a panic: %s", said)
	}
}

// lasting are the clusters that no registry takes away. What hostile peers hold comes and
// goes as they say.
func (r *room) lasting() iter.Seq[string] {
	if r.peers != nil {
		return maps.Keys(r.registry.says())
	}
	return r.good.clusters()
}

// spareGoroutines come and go at rest: those of a scrape, of a round of reading.
const spareGoroutines = 10

// size is one number at full size and another in short.
func size[N any](large, small N) N {
	if *full {
		return large
	}
	return small
}
