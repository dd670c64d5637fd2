package mcp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/budget"
	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/source"
)

// What is more than the memory allows is NACKed, and what was held before goes on.
func TestAPeerCannotTakeMoreMemoryThanThereIs(t *testing.T) {
	many := func(n int, name string) (list []*mcpapi.Resource) {
		for i := range n {
			list = append(list, entry(fmt.Sprintf("%s-%d", name, i), "1", "10.0.0.1"))
		}
		return list
	}
	wide := entry("shop/wide", "1")
	spec := &networking.ServiceEntry{}
	for range 2000 { // two bytes each
		spec.Endpoints = append(spec.Endpoints, &networking.WorkloadEntry{})
	}
	wide.Body = resource("x/y", "", spec).GetBody()
	for name, c := range map[string]struct {
		bad    *mcp.Resources
		nacked string // empty if one resource alone is rejected
	}{
		"a huge state":       {&mcp.Resources{Resources: many(1500, "shop/s")}, "more than the memory allows"},
		"nameless resources": {&mcp.Resources{Resources: make([]*mcpapi.Resource, 20_000)}, "more than the memory allows"},
		"a wide resource":    {&mcp.Resources{Resources: append(many(1, "shop/cart"), wide)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.memory = budget.New(1 << 20)
				m, s := r.begin(only(entries))
				s.acked(s.full(entries, many(1, "shop/cart")...))
				for i, is := range c.bad.GetResources() {
					if is == nil {
						c.bad.Resources[i] = &mcpapi.Resource{}
					}
				}
				c.bad.Collection = entries
				nonce := s.send(c.bad)
				if c.nacked == "" {
					s.acked(nonce)
					m.rejects("ServiceEntry shop/wide", "it has more than 512 fields")
				} else {
					s.nacked(nonce, 8, c.nacked)
				}
				r.holds("Service shop/cart-0", "Endpoint shop/cart-0/10.0.0.1")
				s.acked(s.full(entries, many(2, "shop/cart")...))
				m.is(source.StateLive, "")
			})
		})
	}
}

func several(n int) (list []*mcpapi.Resource) {
	for i := range n {
		list = append(list, entry(fmt.Sprintf("shop/s%d", i), "1", "10.0.0.1"))
	}
	return list
}

// What peers are bounded by together is divided: the more there are, the less each holds.
func TestPeersHoldLessTheMoreThereAre(t *testing.T) {
	bubble(t, func(r *rig) {
		whole := budget.New(2 << 20)
		r.memory = whole.Share("one")
		m, s := r.begin(only(entries))
		s.acked(s.full(entries, several(100)...))
		for i := range 9 {
			whole.Share(fmt.Sprint("another", i)).Keep()
		}
		s.nacked(s.full(entries, several(101)...), 8, "more than the memory allows")
		if n := m.Status().Services; n != 100 {
			t.Errorf("%d services are stored", n)
		}
		for i := range 9 {
			whole.Leave(fmt.Sprint("another", i))
		}
		s.acked(s.full(entries, several(101)...))
	})
}

// Increments without end come to an end, and the next state counts.
func TestIncrementsWithoutEndAreNACKed(t *testing.T) {
	bubble(t, func(r *rig) {
		r.memory = budget.New(1 << 20)
		m, s := r.begin(incremental(entries))
		s.acked(s.full(entries))
		for i := range 3000 {
			nonce := s.send(&mcp.Resources{Collection: entries, Incremental: true, Resources: many(entry(fmt.Sprintf("shop/s%d", i), "1", "10.0.0.1"))})
			q := s.request()
			if q.GetErrorDetail() == nil {
				continue
			}
			if q.GetErrorDetail().GetCode() != 8 || q.GetResponseNonce() != nonce || i < 200 {
				t.Errorf("increment %d is answered by %v", i, q)
			}
			if n := m.Status().Services; n != i {
				t.Errorf("%d services are stored of %d", n, i)
			}
			s.acked(s.send(&mcp.Resources{Collection: entries, Incremental: true, RemovedResources: []string{"shop/s0", "shop/s1"}}))
			return
		}
		t.Error("there is no end")
	})
}

// Nonces, collections and names may be as long and as many as a peer likes.
func TestNoncesAreAnsweredAsTheyAre(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(only(entries))
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1")))
		long := strings.Repeat("n", 1<<20)
		for _, a := range []*mcp.Resources{
			{Collection: entries, Nonce: long, Resources: many(entry("shop/cart", "1", "10.0.0.1"))},
			{Collection: long, Nonce: "1"},
			{Collection: "", Nonce: "2"},
		} {
			if err := s.wire.Send(a); err != nil {
				t.Fatal(err)
			}
			if q := s.request(); q.GetResponseNonce() != a.GetNonce() || q.GetCollection() != a.GetCollection() || len(q.GetErrorDetail().GetMessage()) > 2000 {
				t.Errorf("a nonce of %d bytes is answered by one of %d", len(a.GetNonce()), len(q.GetResponseNonce()))
			}
		}
		if err := s.wire.Send(&mcp.Resources{Collection: entries, Resources: many(entry("shop/users", "1", "10.0.1.1"), entry("shop/cart", "1", "10.0.0.1"))}); err != nil {
			t.Fatal(err)
		}
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1", "Service shop/users", "Endpoint shop/users/10.0.1.1")
		s.silent() // an answer without a nonce would be a request
		m.is(source.StateLive, "")
	})
}

// A peer that reads nothing more is an outage, though it goes on sending.
func TestAPeerThatReadsNothingIsAnOutage(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(only(entries))
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1")))
		s.mutes.Store(true)
		go func() {
			for i := 0; ; i++ {
				if s.wire.Send(&mcp.Resources{Collection: entries, Nonce: strings.Repeat("n", 1<<10), Resources: many(entry("shop/cart", fmt.Sprint(i), "10.0.0.1"))}) != nil {
					return
				}
			}
		}()
		r.pass(time.Minute)
		m.is(source.StateStale, "has read no request for 30s")
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1")
	})
}

// A proxy that forwards nothing any more may keep its connections, and answers the probes of TCP
// itself. A ping shows that nothing comes from the peer.
func TestAMuteConnectionIsFoundByAPing(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(only(entries))
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1")))
		r.pass(time.Hour) // a peer without changes answers pings
		m.is(source.StateLive, "")
		s.acked(s.full(entries, entry("shop/cart", "2", "10.0.0.2")))
		r.muted.Store(true)
		r.pass(6*time.Minute + 19*time.Second)
		m.is(source.StateLive, "")
		r.pass(2 * time.Second)
		m.is(source.StateStale, "ping")
		r.pass(10 * time.Minute) // connections are made, and mute from the start
		m.is(source.StateStale, "")
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.2")

		r.muted.Store(false)
		s = r.stream()
		s.asked(1)
		s.acked(s.full(entries, entry("shop/cart", "3", "10.0.0.3")))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.3")
		m.is(source.StateLive, "")
	})
}

// An answer that is too large to be read ends the stream, and nothing else.
func TestAnAnswerThatIsTooLargeIsAnOutage(t *testing.T) {
	bubble(t, func(r *rig) {
		r.memory = budget.New(1 << 20)
		m, s := r.begin(only(entries))
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1")))
		big := entry("shop/cart", "2", "10.0.0.2")
		big.Metadata.Annotations = map[string]string{"a": strings.Repeat("x", 300<<10)}
		s.full(entries, big)
		r.pass(0)
		m.is(source.StateStale, "an answer may have 262144 bytes here")
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1")
		r.stream().asked(1)
	})
}
