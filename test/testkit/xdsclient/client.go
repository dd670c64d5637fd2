package xdsclient

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// TB is what a client needs of a test.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

// Config says how a client behaves.
type Config struct {
	// Name is what transcripts call the client; default the node's id.
	Name string
	Node *corev3.Node
	// NACK says what is wrong with a resource; empty if nothing is. A
	// response with a wrong resource is NACKed. Nil finds nothing wrong.
	NACK func(Resource) string
	// Rollback clients take nothing of a response they NACK. Others take all
	// but the wrong resources, as Envoy and gRPC do.
	Rollback bool
	// Manual clients answer when the script says so.
	Manual bool
	// Only is the one type, by its URL, of a client that uses the discovery service
	// of that type; empty for the aggregated one.
	Only string
	// Delay is how late the client answers.
	Delay time.Duration
	// Overlap clients expect responses before they have answered the one
	// before, as they come when a server's patience ends.
	Overlap bool
	// Follow returns the exact names that the client subscribes to by what it
	// holds, by type. It is asked after each response; see [FollowClusters].
	Follow func(*State) map[string][]string
	// Ledger is shared by clients whose versions are to be compared.
	Ledger *Ledger
	// Deadline bounds each wait; default [until.Patience].
	Deadline time.Duration
}

// Client is one client with at most one stream. Make one with [NewDelta] or
// [NewSotW].
type Client struct {
	t       TB
	config  Config
	dialect dialect
	conn    grpc.ClientConnInterface

	mu      sync.Mutex
	changed chan struct{} // closed, and replaced, when something changed
	state   State
	order   []string // types in the order they were first asked for
	session *session
	nonces  map[string]bool // of this stream
	lines   []string
	wrong   []string
	ended   error // why the stream ended without the caller having ended it
}

// session is one stream on the wire.
type session struct {
	wire       wire
	stop       context.CancelFunc
	done       chan struct{}
	introduced bool // the first message said whose stream it is
}

// NewDelta returns a client of the delta variant. It connects at once.
func NewDelta(t TB, conn grpc.ClientConnInterface, c Config) *Client {
	t.Helper()
	return start(t, conn, deltaDialect{}, c)
}

// NewSotW returns a client of the state-of-the-world variant. It connects at once.
func NewSotW(t TB, conn grpc.ClientConnInterface, c Config) *Client {
	t.Helper()
	return start(t, conn, sotwDialect{}, c)
}

func start(t TB, conn grpc.ClientConnInterface, d dialect, config Config) *Client {
	t.Helper()
	if config.Deadline == 0 {
		config.Deadline = until.Patience
	}
	if config.Ledger == nil {
		config.Ledger = &Ledger{}
	}
	if config.Name == "" {
		config.Name = config.Node.GetId()
	}
	c := &Client{
		t: t, config: config, dialect: d, conn: conn,
		changed: make(chan struct{}), state: State{topics: map[string]*topic{}},
	}
	c.connect()
	t.Cleanup(c.Close)
	return c
}

func (c *Client) connect() {
	c.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	wire, err := c.dialect.open(ctx, c.conn, c.config.Only)
	if err != nil {
		stop()
		c.t.Fatalf("%s: opening a stream: %v", c.config.Name, err)
	}
	s := &session{wire: wire, stop: stop, done: make(chan struct{})}
	c.mu.Lock()
	c.session, c.nonces, c.ended = s, map[string]bool{}, nil
	c.log("-- connected")
	c.mu.Unlock()
	go c.receiveAll(s)
}

// Close ends the client and reports what was wrong.
func (c *Client) Close() {
	c.t.Helper()
	c.Disconnect()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wrong) > 0 {
		c.t.Errorf("%s", c.report())
		c.wrong = nil
	}
}

// Disconnect ends the stream without a word.
func (c *Client) Disconnect() {
	c.mu.Lock()
	s := c.session
	c.session = nil
	if s != nil {
		c.log("-- disconnected")
	}
	c.mu.Unlock()
	if s != nil {
		s.stop()
		<-s.done
	}
}

// Reconnect opens a new stream, after ending the one before, and asks again for
// what it was subscribed to. The client keeps what it holds and says so, or has
// lost it. One that follows what it holds asks for no type of which it wants
// no name, as gRPC does: to name nothing would mean everything.
func (c *Client) Reconnect(keep bool) {
	c.t.Helper()
	c.Disconnect()
	c.connect()
	c.mu.Lock()
	defer c.mu.Unlock()
	before := map[string]stream{}
	for _, url := range c.order { // all of them first: what one type asks for may count on what another was sent
		k := c.state.topic(url)
		before[url] = k.stream
		c.beginAgain(k, keep)
	}
	for _, url := range c.order {
		k := c.state.topic(url)
		named, asked := before[url].named, before[url].asked
		names, star := sortedKeys(k.names), k.star && (named || !isWhole(url))
		clear(k.names)
		k.star = false
		if star {
			names = append(names, "*") // else by having no names, as before
		}
		if (named || !asked) && len(names) == 0 && c.config.Follow != nil {
			continue // there is nothing to ask for, and to name nothing would be to ask for everything
		}
		c.change(k, names, nil, nil)
	}
}

// beginAgain starts a new stream with what the client keeps of a type.
func (c *Client) beginAgain(k *topic, keep bool) {
	k.begin()
	if !keep {
		clear(k.held)
		k.acked = ""
	}
	if c.dialect.delta() {
		for name, res := range k.held {
			k.check.sent[name] = res.Version
		}
	}
}

// receiveAll is the life of the receiving goroutine.
func (c *Client) receiveAll(s *session) {
	defer close(s.done)
	for {
		r, err := s.wire.receive()
		c.mu.Lock()
		if c.session != s {
			c.mu.Unlock()
			return
		}
		if err != nil {
			c.session, c.ended = nil, err
			c.log("-- the stream ended: %v", err)
			c.wake()
			c.mu.Unlock()
			s.stop()
			return
		}
		c.take(r)
		c.wake()
		c.mu.Unlock()
	}
}

func (c *Client) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// send puts a message on the wire. A stream that has ended says so to its reader.
func (c *Client) send(m proto.Message) {
	if c.session == nil {
		c.log("-- not sent, there is no stream")
		return
	}
	c.state.clock++
	if !c.session.introduced {
		introduce(m, c.config.Node)
		c.session.introduced = true
	}
	_ = c.session.wire.send(m)
}

// longest is how much of a transcript is worth reading.
const longest = 300

func (c *Client) log(format string, args ...any) {
	c.lines = append(c.lines, fmt.Sprintf(format, args...))
	if len(c.lines) > 2*longest {
		c.lines = slices.Clone(c.lines[longest:])
	}
}

// Report is what the client holds and what it was sent, for a test that fails.
func (c *Client) Report() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.report()
}

// report is what a failed test shows of the client.
func (c *Client) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "client %s", c.config.Name)
	for _, wrong := range c.wrong {
		fmt.Fprintf(&b, "\n  the server broke a rule: %s", wrong)
	}
	for _, url := range c.order {
		fmt.Fprintf(&b, "\n  %s subscribed %q, holds %q", short(url), c.state.Subscribed(url), c.state.Names(url))
	}
	b.WriteString("\n  transcript:")
	for _, line := range c.lines[max(0, len(c.lines)-longest):] {
		b.WriteString("\n    " + line)
	}
	return b.String()
}
