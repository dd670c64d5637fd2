package xdsclient

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// Node describes a client of a namespace. Agent is what it says it is, such as
// "envoy" or "gRPC Go".
func Node(id, namespace, agent string) *corev3.Node {
	node := &corev3.Node{Id: id, UserAgentName: agent}
	if namespace != "" {
		node.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{"NAMESPACE": structpb.NewStringValue(namespace)}}
	}
	return node
}

// Read lets the script look at the client's state.
func (c *Client) Read(look func(*State)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	look(&c.state)
}

// Await waits until a condition holds. It fails the test when the condition
// does not hold in time, when the stream ends first, or when the server broke a rule.
func (c *Client) Await(what string, holds func(*State) bool) {
	c.t.Helper()
	c.AwaitNone(func(s *State) string {
		if holds(s) {
			return ""
		}
		return what
	})
}

// AwaitNone is Await for what can be said more exactly: it waits until nothing
// is missing.
func (c *Client) AwaitNone(missing func(*State) string) {
	c.t.Helper()
	limit := time.NewTimer(c.config.Deadline)
	defer limit.Stop()
	late := false
	for {
		c.mu.Lock()
		what, changed, why := missing(&c.state), c.changed, ""
		met := what == ""
		switch {
		case len(c.wrong) > 0:
			why = "the server broke a rule"
		case met:
		case c.session == nil:
			why = "there is no stream"
		case late:
			why = "it does not come"
		}
		report := ""
		if why != "" {
			report = c.report()
			c.wrong = nil // reported
		}
		c.mu.Unlock()
		switch {
		case why != "":
			c.t.Fatalf("waiting for %s: %s\n%s", what, why, report)
		case met:
			return
		}
		select {
		case <-changed:
		case <-limit.C:
			late = true
		}
	}
}

// AwaitHeld waits until the client holds exactly these names of a type.
func (c *Client) AwaitHeld(typeURL string, names ...string) {
	c.t.Helper()
	slices.Sort(names)
	c.Await("exactly these "+short(typeURL), func(s *State) bool { return slices.Equal(s.Names(typeURL), names) })
}

// AwaitEnd waits until the server has ended the stream, and returns its word.
func (c *Client) AwaitEnd() error {
	c.t.Helper()
	limit := time.NewTimer(c.config.Deadline)
	defer limit.Stop()
	for {
		c.mu.Lock()
		ended, changed, report := c.ended, c.changed, c.report()
		c.mu.Unlock()
		if ended != nil {
			return ended
		}
		select {
		case <-changed:
		case <-limit.C:
			c.t.Fatalf("the stream does not end\n%s", report)
		}
	}
}

// Quiet makes sure that the server has nothing more to send of a type because
// of what it knew when Quiet was called: it asks for a resource, waits for
// it, and unsubscribes unless it was subscribed before. Responses of a type
// come in order. Those that Quiet itself brings about are not counted.
func (c *Client) Quiet(typeURL, name string) {
	c.t.Helper()
	var star, named bool
	var before int
	about := func(s *State) int { return s.Received(typeURL, name) + s.Removals(typeURL, name) }
	ask := func() {
		c.Read(func(s *State) {
			k := s.topic(typeURL)
			star, before = k.star, about(s)
			_, named = k.names[name]
			k.responses--
		})
	}
	await := func() {
		c.t.Helper()
		c.Await("an answer about "+name, func(s *State) bool { return about(s) > before && s.Open(typeURL) == 0 })
	}
	ask()
	if named && !c.dialect.delta() {
		c.Unsubscribe(typeURL, name)
	}
	if star { // to name something must not end what is implied by naming nothing
		c.Subscribe(typeURL, name, "*")
	} else {
		c.Subscribe(typeURL, name)
	}
	await()
	if named {
		return
	}
	if star && c.dialect.delta() {
		ask()
		c.Unsubscribe(typeURL, name)
		await()
		return
	}
	c.Unsubscribe(typeURL, name)
}

// Unfollow makes a client keep its subscriptions as they are; see [Config].Follow.
func (c *Client) Unfollow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.config.Follow = nil
}

// IsDelta reports whether the client speaks the delta variant.
func (c *Client) IsDelta() bool { return c.dialect.delta() }

// IsConnected reports whether the client has a stream.
func (c *Client) IsConnected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session != nil
}

// Send puts a message of the script's on the wire, of which the client takes
// no further note.
func (c *Client) Send(m proto.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log("-> by hand: %s", describeMessage(m))
	c.send(m)
}

// Nonce returns the nonce of the newest response of a type.
func (c *Client) Nonce(typeURL string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.topic(typeURL).newest.nonce
}

// Version returns the version_info of the newest response of a type.
func (c *Client) Version(typeURL string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.topic(typeURL).newest.version
}

// Expect tells the client that the server owes it something about names of a
// type, for what the script did by hand.
func (c *Client) Expect(typeURL string, names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.state.topic(typeURL)
	k.asked = true
	for _, name := range names {
		k.check.ask(name, k.covers(name))
		k.names[name] = c.state.clock
	}
}

// Claims tells the client that the script said by hand that it holds names of a type.
func (c *Client) Claims(typeURL string, names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		c.state.topic(typeURL).check.sent[name] = claimed
	}
}

// claimed stands for the content of what a client says that it holds.
const claimed = "claimed"

// introduce makes the first message of a stream say whose it is.
func introduce(m proto.Message, node *corev3.Node) {
	switch m := m.(type) {
	case *discoveryv3.DiscoveryRequest:
		m.Node = node
	case *discoveryv3.DeltaDiscoveryRequest:
		m.Node = node
	}
}

func describeMessage(m proto.Message) string {
	const enough = 400
	if proto.Size(m) > enough {
		return fmt.Sprintf("a message of %d bytes", proto.Size(m))
	}
	return prototext.MarshalOptions{}.Format(m)
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
