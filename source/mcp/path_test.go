package mcp_test

import (
	"strings"
	"testing"
	"time"

	mcpapi "istio.io/api/mcp/v1alpha1"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/source"
)

// through is a resource with the paths of its items. The Isthmus that reads it is "here".
func through(path string, r *mcpapi.Resource) *mcpapi.Resource {
	r.Metadata.Annotations = map[string]string{istio.AnnotationPath: path}
	return r
}

// echoed checks how many resources of the first collection came through this Isthmus, and
// that a notice names one of them.
func (m *mirror) echoed(count int, name string) {
	m.Helper()
	if got := m.Exchanges()[0].Echoed; got != count {
		m.Errorf("%d resources came through here, want %d", got, count)
	}
	var texts []string
	for _, n := range m.Status().Notices {
		texts = append(texts, n.Text)
	}
	if all := strings.Join(texts, "\n"); strings.Contains(all, "came in whole or in part through this Isthmus, here,") != (count > 0) || !strings.Contains(all, name) {
		m.Errorf("the notices are %q", all)
	}
}

// A full state has what it has, whichever way that came, and is ACKed. Of its resources those
// items are taken that did not come through here.
func TestNothingThatCameThroughHereIsTakenOfAFullState(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(only(entries))
		s.acked(s.full(entries,
			through("east", entry("shop/cart", "1", "10.0.0.1")),
			through("here,east", entry("shop/pay", "1", "10.0.1.1")),
			through("north,here,east", entry("shop/users", "1", "10.0.2.1")),
			through("north,east;here,east/0x3,1", entry("shop/web", "1", "10.0.3.1", "10.0.3.2")), // the object, its port and its first endpoint; its second
		))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1", "Service shop/web", "Endpoint shop/web/10.0.3.1")
		m.is(source.StateLive, "")
		m.echoed(3, "shop/pay")

		// Another way is another answer: the one comes by a way of its own, the other only through here.
		s.acked(s.full(entries,
			through("here,east", entry("shop/cart", "1", "10.0.0.1")),
			through("north,east", entry("shop/pay", "1", "10.0.1.1")),
			through("north,east", entry("shop/web", "1", "10.0.3.1", "10.0.3.2")),
		))
		r.holds("Service shop/pay", "Endpoint shop/pay/10.0.1.1", "Service shop/web", "Endpoint shop/web/10.0.3.1", "Endpoint shop/web/10.0.3.2")
		m.is(source.StateLive, "")
		m.echoed(1, "")
		s.acked(s.full(entries,
			through("north,east", entry("shop/pay", "1", "10.0.1.1")),
			through("north,east", entry("shop/web", "1", "10.0.3.1", "10.0.3.2")),
		))
		m.echoed(0, "")
	})
}

// What is held because a peer lists it no more goes at once when the peer has it by nobody
// but through here: nothing but the hold keeps it alive then.
func TestHeldRecordsGoOnceThePeerHasThemFromHere(t *testing.T) {
	for name, send := range map[string]func(*stream, *mcpapi.Resource){
		"full state": func(s *stream, r *mcpapi.Resource) { s.acked(s.full(entries, r)) },
		"increment": func(s *stream, r *mcpapi.Resource) {
			s.acked(s.send(&mcp.Resources{Collection: entries, Incremental: true, Resources: []*mcpapi.Resource{r}}))
		},
		"first state of a stream": func(s *stream, r *mcpapi.Resource) {
			s.close()
			s = s.stream()
			s.asked(1)
			s.acked(s.full(entries, r))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				m, s := r.beginHeld()
				send(s, through("west,here,north,east", entry("shop/cart", "1", "10.0.0.1")))
				r.holds()
				m.is(source.StateLive, "")
			})
		})
	}
}

// A peer that lists what it reads here, and has no name, says nothing of what it had itself.
func TestHeldRecordsStayWhenThePeerListsWhatItReadsHere(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.beginHeld()
		s.acked(s.full(entries, through("west,here", entry("shop/cart", "1", "10.0.0.1"))))
		r.holds("Service shop/cart (held)", "Endpoint shop/cart/10.0.0.1 (held)")
		m.is(source.StateHeld, "")
		r.pass(3 * time.Minute)
		r.holds()
		m.is(source.StateLive, "")
	})
}

// beginHeld begins with a service that the peer had, and lists no more.
func (r *rig) beginHeld() (*mirror, *stream) {
	r.Helper()
	m, s := r.begin(incremental(entries))
	s.acked(s.full(entries, through("west,east", entry("shop/cart", "1", "10.0.0.1"))))
	s.acked(s.full(entries))
	r.holds("Service shop/cart (held)", "Endpoint shop/cart/10.0.0.1 (held)")
	m.is(source.StateHeld, "")
	r.pass(time.Second)
	return m, s
}
