package mcp_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/budget"
	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/source"
	sourcemcp "github.com/isthmus-mesh/isthmus/source/mcp"
)

// A process that starts without a folder serves whatever the first listing has. So
// services that are late are no listing.
func TestServicesThatAreLateAreWaitedFor(t *testing.T) {
	bubble(t, func(r *rig) {
		m := r.mirror(sourcemcp.Config{})
		s := r.stream()
		for c := range s.asked(5) {
			if c != synthetic {
				s.full(c)
			}
		}
		r.pass(12 * time.Second)
		m.is(source.StateListing, "")
		r.holds()
		s.full(synthetic, entry("shop/cart", "1", "10.0.0.1"))
		m.is(source.StateLive, "")
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1")
	})
}

// The other one of the two may bring the first service later, too: then the silent one
// is waited for as any other collection is.
func TestASilentCollectionIsNotWaitedForOnceTheOtherHasServices(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(only(entries, synthetic, sidecars))
		s.full(entries)
		r.pass(20 * time.Second)
		m.is(source.StateListing, "")
		s.full(entries, entry("shop/cart", "1", "10.0.0.1"))
		r.pass(4 * time.Second)
		m.is(source.StateListing, "")
		// That one of them is sent again and again makes the others no less late.
		s.full(entries, entry("shop/cart", "2", "10.0.0.1"))
		r.pass(2 * time.Second)
		m.is(source.StateLive, "")
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1")
	})
}

// A peer that keeps the rules sends nothing more of a collection before the ACK.
func TestTheFirstServiceMayComeAfterAnEmptyAnswer(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(only(entries, synthetic))
		s.acked(s.full(entries))
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1")))
		m.is(source.StateListing, "")
		s.acked(s.full(synthetic))
		m.is(source.StateLive, "")
	})
}

// What cannot be taken is no service.
func TestRejectedServicesAreNone(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(only(entries, synthetic))
		s.full(entries, garbage("shop/cart"), entrySpec("shop/users", "1", "under_score", 80, nil), entry("noslash", "1"))
		r.pass(10 * time.Second)
		m.is(source.StateListing, "")
		s.full(synthetic)
		m.is(source.StateLive, "")
	})
}

func TestTheStateNamesTheCollectionThatLacks(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(only(entries, synthetic, sidecars))
		s.full(entries)
		s.full(sidecars)
		r.pass(31 * time.Second)
		m.is(source.StateListing, "has not sent "+synthetic+" for 30s")
		m.is(source.StateListing, "collections: ["+entries+", "+sidecars+"]")
		// It is asked for again, and what is stored is served meanwhile.
		s = r.stream()
		s.asked(3)
		for c, n := range map[string]string{entries: "a", synthetic: "b", sidecars: ""} {
			if n == "" {
				s.full(c)
				continue
			}
			s.full(c, entry("shop/"+n, "1", "10.0.0.1"))
		}
		m.is(source.StateLive, "")
		s.close()
		r.pass(0)
		s = r.stream()
		s.asked(3)
		s.full(entries)
		r.pass(10 * time.Second)
		m.is(source.StateStale, "")
		r.holds("Service shop/a", "Endpoint shop/a/10.0.0.1", "Service shop/b", "Endpoint shop/b/10.0.0.1")
	})
}

// A state that is too large, at the first start of a process: nothing is known of the
// services, so nothing is listed.
func TestWhatWasNACKedIsNotListed(t *testing.T) {
	for _, large := range []string{entries, synthetic} {
		t.Run(large, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.memory = budget.New(1 << 20)
				m := r.mirror(sourcemcp.Config{})
				s := r.stream()
				for c := range s.asked(5) {
					switch c {
					case large:
					case entries, synthetic:
						s.acked(s.full(c, several(1)...))
					default:
						s.acked(s.full(c))
					}
				}
				s.nacked(s.full(large, several(1500)...), 8, "more than the memory allows")
				r.pass(20 * time.Second)
				m.is(source.StateListing, "")
				r.holds()
				r.pass(11 * time.Second)
				m.is(source.StateListing, large+" was NACKed")
				m.is(source.StateListing, "GOMEMLIMIT")

				s = r.stream()
				for c := range s.asked(5) {
					if c == large {
						s.full(c, several(2)...)
					} else {
						s.full(c)
					}
				}
				m.is(source.StateLive, "")
				if n := m.Status().Services; n != 2 {
					t.Errorf("%d services are stored", n)
				}
			})
		})
	}
}

// What is right on the same stream counts.
func TestWhatIsSentAfterANACKIsListed(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(only(entries, synthetic))
		s.nacked(s.full(entries, garbage("shop/cart")), 3, "decoded")
		s.acked(s.full(synthetic, entry("shop/users", "1", "10.0.1.1")))
		r.pass(10 * time.Second)
		m.is(source.StateListing, "")
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1")))
		m.is(source.StateLive, "")
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1", "Service shop/users", "Endpoint shop/users/10.0.1.1")
	})
}

// What was applied and then NACKed is not known either, until everything is listed.
func TestANACKAfterAnAnswerHoldsUpTheListing(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(only(entries, synthetic))
		s.acked(s.full(entries))
		s.nacked(s.full(entries, garbage("shop/cart")), 3, "decoded")
		s.acked(s.full(synthetic))
		r.pass(10 * time.Second)
		m.is(source.StateListing, "")
	})
}

// Once everything is listed nothing is waited for any more.
func TestANACKAfterTheListingIsNoOutage(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(only(entries, synthetic))
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1")))
		s.acked(s.full(synthetic))
		s.nacked(s.full(entries, garbage("shop/cart")), 3, "decoded")
		r.pass(time.Minute)
		m.is(source.StateLive, "")
		s.acked(s.full(entries, entry("shop/cart", "2", "10.0.0.2")))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.2")
	})
}

// A collection that makes no service holds up nothing, whatever becomes of it.
func TestOtherCollectionsHoldUpNothing(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(only(entries, sidecars, workloads))
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1")))
		s.nacked(s.full(sidecars, garbage("shop/sidecar")), 3, "decoded")
		r.pass(4 * time.Second)
		m.is(source.StateListing, "")
		r.pass(2 * time.Second)
		m.is(source.StateLive, "")
		var texts []string
		for _, n := range m.Status().Notices {
			texts = append(texts, n.Object+": "+n.Text)
		}
		if all := strings.Join(texts, "\n"); len(texts) != 2 || !strings.Contains(all, "collection "+sidecars+": NACKed") ||
			!strings.Contains(all, "collection "+workloads+": the peer has not sent it") {
			t.Errorf("the notices are %s", all)
		}
	})
}

// A peer that knows neither collection of services is no peer without services.
func TestThePeerMustKnowACollectionOfServices(t *testing.T) {
	bubble(t, func(r *rig) {
		m := r.mirror(sourcemcp.Config{})
		for i, c := range []string{synthetic, entries, entries} {
			r.stream().fail(status.Errorf(codes.InvalidArgument, "unsupported collection %q", c))
			r.pass(0)
			if i > 0 {
				m.is(source.StateListing, "list the served ones in collections")
			}
			r.pass(10 * time.Second)
		}
		s := r.stream()
		asked := s.asked(4)
		if asked[entries] == nil {
			t.Fatalf("asked for %v", asked)
		}
		for c := range asked {
			if c != entries {
				s.full(c)
			}
		}
		r.pass(10 * time.Second)
		m.is(source.StateListing, "")
	})
}

// With increments, what is held of a stream before is a service as well.
func TestWhatIsResumedIsAService(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(incremental(entries, synthetic))
		s.full(entries, entry("shop/cart", "1", "10.0.0.1"))
		s.full(synthetic)
		m.is(source.StateLive, "")
		s.close()
		s = r.stream()
		s.asked(2)
		s.send(&mcp.Resources{Collection: entries, Incremental: true})
		r.pass(6 * time.Second)
		m.is(source.StateLive, "")
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1")
	})
}

// An answer that can be neither read nor NACKed, for it has no nonce that can be read,
// leaves nobody knowing where the stream stands.
func TestAnAnswerThatCannotBeNACKedEndsTheStream(t *testing.T) {
	for name, bad := range map[string]string{
		"the nonce is no text":      "\x12" + field(entries) + "\x28\x01",
		"it breaks off before that": "\x12" + field(entries) + "\x2a\x7f",
		"nothing of it is a field":  "\xff\xff\xff",
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				m, s := r.begin(only(entries))
				s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1")))
				s.raw([]byte(bad))
				r.pass(0)
				m.is(source.StateStale, "cannot be NACKed")
				if e := m.Exchanges(); e[0].NACKed != 0 || e[0].NACK != "" {
					t.Errorf("a NACK is claimed: %+v", e)
				}
				if n := m.Status().Notices; len(n) != 0 {
					t.Errorf("the notices are %v", n)
				}
				r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1")
				s = r.stream()
				s.asked(1)
				s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1")))
				m.is(source.StateLive, "")
			})
		})
	}
}

// The peer's log is read by whoever runs the peer, and the status by whoever runs Isthmus.
func TestReasonsFitTheirReader(t *testing.T) {
	bubble(t, func(r *rig) {
		r.memory = budget.New(1 << 20)
		m, s := r.begin(only(entries))
		s.acked(s.full(entries, several(1)...))
		s.full(entries, several(1500)...)
		if text := s.request().GetErrorDetail().GetMessage(); !strings.Contains(text, "more than the memory allows") || strings.Contains(text, "GOMEMLIMIT") {
			t.Errorf("the peer reads %q", text)
		}
		if n := m.Status().Notices; len(n) != 1 || !strings.Contains(n[0].Text, "GOMEMLIMIT") {
			t.Errorf("the operator reads %v", n)
		}
		if e := m.Exchanges(); !strings.Contains(e[0].NACK, "GOMEMLIMIT") {
			t.Errorf("the operator reads %+v", e)
		}
	})
}

// raw sends bytes that may be no message.
func (s *stream) raw(text []byte) {
	s.Helper()
	a := &mcp.Resources{}
	a.ProtoReflect().SetUnknown(text)
	if err := s.wire.Send(a); err != nil {
		s.Fatal(err)
	}
	synctest.Wait()
}

// field is the content of a field of bytes on the wire.
func field(text string) string { return fmt.Sprintf("%c%s", len(text), text) }
