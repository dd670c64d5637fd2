package xds_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// Clients that never read, or read and never answer, are shown as waiting, with
// the reason and since when, and cost nothing as the catalog changes. Whoever
// reads beside them follows every change.
func TestStuckClientsCostNothing(t *testing.T) {
	const host, changes, stuck = "big.example", 100, 5
	for _, test := range []struct {
		name     string
		patience time.Duration
		connect  func(t *testing.T, r *rig, name string)
		reason   string
	}{
		{
			"never read", time.Millisecond, // some responses the transport takes off our hands
			func(t *testing.T, r *rig, name string) { t.Helper(); stick(t, r, name, host) },
			"the client does not read: the response is not on the wire yet",
		},
		{
			"never answer", time.Hour,
			func(t *testing.T, r *rig, name string) {
				t.Helper()
				s := openRaw(t, r.dial(), adsDelta)
				s.say(&discoveryv3.DeltaDiscoveryRequest{Node: xdsclient.Node(name, "shop", "envoy"), TypeUrl: eds, ResourceNamesSubscribe: clustersOf(host)})
				s.delta()
			},
			"the client has not answered yet",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, setup{engine: push.Config{Workers: 1, Patience: test.patience}})
			r.put(bigService(host, 300)...)
			for i := range stuck {
				test.connect(t, r, fmt.Sprint("stuck", i))
			}
			reader := r.deltaWith(xdsclient.Config{Node: xdsclient.Node("reader", "shop", "envoy"), Overlap: true})
			reader.Subscribe(eds, clusterOf(host))
			round := uint32(1)
			follow := func() {
				round++
				e := endpoint("shop", host, "0", "")
				e.Spec = model.Endpoint{Address: "10.1.0.0", Weight: round}
				r.put(e)
				reader.Await("the change", func(s *xdsclient.State) bool { return weightOf(s, clusterOf(host)) == round })
			}
			follow()
			r.await("reason that is shown for each", func() bool {
				follow()
				return waiting(r, test.reason) == stuck
			})
			goroutines, before, start := atRest(), assembled(r), time.Now()
			for range changes {
				follow()
			}
			if n := assembled(r) - before; n != changes {
				t.Errorf("%d responses were assembled for %d changes", n, changes)
			}
			if now := atRest(); now > goroutines+stuck {
				t.Errorf("there are %d goroutines, and were %d", now, goroutines)
			}
			if n := waiting(r, test.reason); n != stuck {
				t.Errorf("%d clients are shown as waiting because %s", n, test.reason)
			}
			for _, c := range r.engine.Clients() {
				if since := c.Types[0].Since; c.ID != "reader" && since.After(start) {
					t.Errorf("%s is shown to wait for %v", c.ID, time.Since(since))
				}
			}
		})
	}
}

// A client that does not read and answers what it has not been sent, by guessing
// nonces, keeps no worker from the others.
func TestGuessedNoncesHarmNobody(t *testing.T) {
	const host, nonces, rounds = "big.example", 40, 60
	r := newRig(t, setup{engine: push.Config{Workers: 1}})
	r.put(bigService(host, 300)...)
	guesser := openRaw(t, r.dial(), adsDelta)
	for range rounds {
		for nonce := range nonces {
			guesser.say(&discoveryv3.DeltaDiscoveryRequest{
				Node: xdsclient.Node("guesser", "shop", "envoy"), TypeUrl: eds, ResponseNonce: strconv.Itoa(nonce), ResourceNamesSubscribe: clustersOf(host),
			})
		}
	}
	reader := r.deltaWith(xdsclient.Config{Node: xdsclient.Node("reader", "shop", "envoy")})
	reader.Subscribe(eds, clusterOf(host))
	for round := uint32(2); round < 100; round++ {
		e := endpoint("shop", host, "0", "")
		e.Spec = model.Endpoint{Address: "10.1.0.0", Weight: round}
		r.put(e)
		reader.Await("the change", func(s *xdsclient.State) bool { return weightOf(s, clusterOf(host)) == round })
	}
}

// waiting counts the clients that are shown as waiting for load assignments for a reason.
func waiting(r *rig, reason string) (n int) {
	for _, c := range r.engine.Clients() {
		for _, on := range c.Types {
			if c.ID != "reader" && on.Type == eds && on.State == session.Waiting && on.Reason == reason {
				n++
			}
		}
	}
	return n
}

// assembled counts the responses of all types that were assembled so far.
func assembled(r *rig) (n uint64) {
	for _, count := range r.engine.Counts() {
		n += count.Responses
	}
	return n
}
