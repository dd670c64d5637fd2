package envoy_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// TestWhoDoesNotAnswerHasAConflict draws services of every combination, and looks for those
// that some call of theirs does not reach. Each of them says so: it has a conflict at
// that port.
func TestWhoDoesNotAnswerHasAConflict(t *testing.T) {
	t.Parallel()
	random := &combinations{Rand: rand.New(rand.NewPCG(*seed, 31))}
	m := newMesh(t)
	m.Folder.remove(t, "stays")
	var some []object
	for range drawn {
		some = append(some, random.draw()...)
	}
	m.Folder.write(t, "drawn", unique(some)...)
	i := m.Serve("")
	services, err := i.services()
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for _, s := range services {
		for _, c := range s.Conflicts {
			at, _, _ := strings.Cut(c.Field, "]")
			said[s.Namespace+"/"+s.Host+" "+at+"]"] = true
		}
	}
	o := newOracle(m.Folder.objects(), true, false)
	lost, unsaid := 0, 0
	for _, s := range o.all {
		c, missed := o.missed(s)
		if !missed {
			continue
		}
		lost++
		if name := fmt.Sprintf("%s/%s ports[%d]", s.namespace(), s.host, s.port.Number); !said[name] {
			if unsaid++; unsaid < 10 {
				t.Errorf("%s, %s: no conflict says that %s reaches %v", name, s.port.Protocol, c, o.atSidecar(c))
			}
		}
	}
	t.Logf("%d of %d ports have a call that does not reach them, and %d do not say so", lost, len(o.all), unsaid)
	if lost < drawn/100 {
		t.Errorf("%d services do not answer, which is too few to say anything", lost)
	}
}

// missed is a call of a service that reaches another, or nobody.
func (o *oracle) missed(s offered) (c call, missed bool) {
	if s.port.Number == 15001 { // where no sidecar can listen for a service
		return call{}, false
	}
	for _, c := range s.ownCalls() {
		if uint32(c.to.Port()) != s.port.Number {
			continue // of an instance at a port of its own, where any service of that port may listen
		}
		got := o.atSidecar(c)
		if !slices.Equal(got, c.want) && !slices.Equal(got, routedTo(c.want)) {
			return c, true
		}
	}
	return call{}, false
}

// ownCalls are the calls of a service at its own addresses, at those of its endpoints, or at one that
// nobody has, in what it is spoken to in. No handshake can name a host of which a part of a label is a
// wildcard.
func (s offered) ownCalls() (calls []call) {
	at, blocks := s.addresses()
	for _, block := range blocks {
		at = append(at, block.Addr().Next().Next())
	}
	kind, chosen := carries(s.port), s.Spec.Resolution == "STATIC" && len(s.Spec.Addresses) == 0
	if len(at) == 0 || kind == requests {
		at = append(at, unclaimed(false))
	}
	for _, ip := range at {
		to := netip.AddrPortFrom(ip, uint16(s.port.Number))
		if kind == requests || kind == anything {
			for _, name := range s.names() {
				calls = append(calls, call{to: to, says: inHTTP, host: strings.Replace(name, "*", "any", 1)})
			}
		}
		if _, nameable := named(s.anyHost(), []offered{s}); kind == handshakes && nameable {
			calls = append(calls, call{to: to, says: inTLS, host: s.anyHost()})
		}
		if (kind == connections || kind == anything) && !chosen {
			calls = append(calls, call{to: to, says: inLine})
		}
	}
	for i := range calls {
		calls[i].want = s.reached(calls[i])
	}
	if chosen && (kind == connections || kind == anything) {
		for _, to := range s.instances() {
			calls = append(calls, call{to: to, says: inLine, want: []string{to.String()}})
		}
	}
	return calls
}
