package xds_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// Whatever nonces its requests carry, and whenever it ACKs, a client ends with all that it
// subscribes to, in the newest state, and is sent nothing else from then on.
func TestNoNonceLosesASubscription(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := newNonces(t)
		for range rapid.IntRange(0, 25).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0, 1:
				c.request(c.drawNonce(), c.drawNames("names"), c.drawNames("dropped"))
			case 2:
				c.change(rapid.SampledFrom(c.hosts).Draw(t, "changed"))
			case 3:
				c.take()
			case 4:
				c.rig.dispatched()
			}
		}
		c.settle()
	})
}

// nonces is a client of load assignments, with the model of what it must end with.
type nonces struct {
	t     *rapid.T
	rig   *rig
	wire  grpc.ClientStream
	delta bool
	came  chan answered // closed when the stream ends

	hosts []string
	now   map[string]string // addresses, by name
	count int               // changes

	begun      bool
	subscribed map[string]bool
	received   []string          // nonces
	answered   bool              // the newest response
	held       map[string]string // addresses, by name; a name that is dropped is forgotten
}

// answered is a response of either variant.
type answered struct {
	nonce     string
	addresses map[string]string // by name
}

func newNonces(t *rapid.T) *nonces {
	c := &nonces{
		t: t, delta: rapid.Bool().Draw(t, "delta"), came: make(chan answered, 10_000), hosts: []string{"a.example", "b.example", "c.example"},
		now: map[string]string{}, subscribed: map[string]bool{}, held: map[string]string{},
	}
	engine := push.Config{Workers: 1}
	if rapid.Bool().Draw(t, "impatient") {
		engine.Patience = time.Millisecond
	}
	c.rig = newRig(t, setup{engine: engine})
	c.rig.put(service("shop", probe))
	for _, host := range append(c.hosts, probe) {
		c.rig.put(service("shop", host))
		c.change(host)
	}
	c.rig.dispatched()
	method := adsSotw
	if c.delta {
		method = adsDelta
	}
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	wire, err := c.rig.dial().NewStream(ctx, streamDesc, method)
	if err != nil {
		t.Fatal(err)
	}
	c.wire = wire
	go c.receive()
	return c
}

func (c *nonces) receive() {
	defer close(c.came)
	for {
		var a answered
		var err error
		if c.delta {
			m := &discoveryv3.DeltaDiscoveryResponse{}
			err = c.wire.RecvMsg(m)
			a = answered{m.GetNonce(), map[string]string{}}
			for _, r := range m.GetResources() {
				a.take(r.GetResource())
			}
		} else {
			m := &discoveryv3.DiscoveryResponse{}
			err = c.wire.RecvMsg(m)
			a = answered{m.GetNonce(), map[string]string{}}
			for _, r := range m.GetResources() {
				a.take(r)
			}
		}
		if err != nil {
			return
		}
		c.came <- a
	}
}

func (a answered) take(body *anypb.Any) {
	m := &endpointv3.ClusterLoadAssignment{}
	if err := body.UnmarshalTo(m); err != nil {
		panic(err) // what is served is an assignment
	}
	a.addresses[m.GetClusterName()] = addressIn(m)
}

func (c *nonces) drawNames(what string) []string {
	return clustersOf(rapid.SliceOfDistinct(rapid.SampledFrom(c.hosts), rapid.ID[string]).Draw(c.t, what)...)
}

func (c *nonces) drawNonce() string {
	switch kind := rapid.SampledFrom([]string{"fresh", "stale", "foreign", "none"}).Draw(c.t, "nonce"); {
	case kind == "foreign":
		return "of-nobody"
	case kind == "none" || len(c.received) == 0:
		return ""
	case kind == "fresh":
		return c.received[len(c.received)-1]
	default:
		return rapid.SampledFrom(c.received).Draw(c.t, "which")
	}
}

// request subscribes to names and, in the delta variant, drops others. In the other variant all
// that are not named are dropped.
func (c *nonces) request(nonce string, names, dropped []string) {
	c.answered = c.answered || len(c.received) == 0 || nonce == c.received[len(c.received)-1]
	if c.delta {
		dropped = slices.DeleteFunc(dropped, func(name string) bool { return slices.Contains(names, name) })
		c.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: eds, ResponseNonce: nonce, ResourceNamesSubscribe: names, ResourceNamesUnsubscribe: dropped})
	} else {
		dropped = slices.DeleteFunc(slices.Collect(maps.Keys(c.subscribed)), func(name string) bool { return slices.Contains(names, name) })
		c.say(&discoveryv3.DiscoveryRequest{TypeUrl: eds, ResponseNonce: nonce, ResourceNames: names})
	}
	for _, name := range dropped {
		delete(c.subscribed, name)
		delete(c.held, name)
	}
	for _, name := range names {
		c.subscribed[name] = true
	}
}

func (c *nonces) say(m proto.Message) {
	if !c.begun {
		c.begun = true
		switch m := m.(type) {
		case *discoveryv3.DeltaDiscoveryRequest:
			m.Node = rawNode
		case *discoveryv3.DiscoveryRequest:
			m.Node = rawNode
		}
	}
	if err := c.wire.SendMsg(m); err != nil {
		c.t.Fatalf("the stream ended: %v", err)
	}
}

// change gives a host another address.
func (c *nonces) change(host string) {
	c.count++
	address := fmt.Sprintf("10.0.%d.%d", c.count/250, c.count%250)
	c.rig.put(endpoint("shop", host, "one", address))
	c.now[clusterOf(host)] = address
}

// take takes in what has come.
func (c *nonces) take() {
	for {
		select {
		case a, ok := <-c.came:
			if !ok {
				c.t.Fatalf("the stream has ended")
			}
			c.enter(a)
		default:
			return
		}
	}
}

func (c *nonces) enter(a answered) {
	c.received, c.answered = append(c.received, a.nonce), false
	for name, address := range a.addresses {
		if c.subscribed[name] {
			c.held[name] = address
		}
	}
}

// ack answers the newest response, and changes nothing.
func (c *nonces) ack() {
	if len(c.received) > 0 {
		names := slices.Sorted(maps.Keys(c.subscribed))
		if c.delta {
			names = nil
		}
		c.request(c.received[len(c.received)-1], names, nil)
	}
}

// await ACKs all that comes until the client holds what it must. It returns the names that came.
func (c *nonces) await() (names map[string]bool) {
	names = map[string]bool{}
	late := time.NewTimer(until.Patience)
	defer late.Stop()
	for !c.isSettled() {
		select {
		case a, ok := <-c.came:
			if !ok {
				c.t.Fatalf("the stream has ended")
			}
			for name := range a.addresses {
				names[name] = true
			}
			c.enter(a)
			c.ack()
		case <-late.C:
			c.t.Fatalf("it subscribes to %v and holds %v of %v", slices.Sorted(maps.Keys(c.subscribed)), c.held, c.now)
		}
	}
	return names
}

func (c *nonces) isSettled() bool {
	for name := range c.subscribed {
		if c.held[name] != c.now[name] {
			return false
		}
	}
	return true
}

// settle waits until the client holds what it must, and makes sure that it is sent changes of
// that alone.
func (c *nonces) settle() {
	c.take()
	if !c.answered { // else nothing but changes may repeat what was lost
		c.ack()
	}
	c.await()
	c.request("", append(slices.Sorted(maps.Keys(c.subscribed)), clusterOf(probe)), nil) // answered after all that was said before
	c.await()
	for _, host := range c.hosts {
		c.change(host)
	}
	c.rig.dispatched()
	c.change(probe)
	for name := range c.await() {
		if !c.subscribed[name] {
			c.t.Fatalf("it was sent %s, and subscribes to %v", name, slices.Sorted(maps.Keys(c.subscribed)))
		}
	}
}
