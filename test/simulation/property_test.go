package simulation

import (
	"slices"
	"strings"
	"testing"

	"istio.io/istio/pilot/pkg/simulation"
	"pgregory.net/rapid"
)

// TestAnyCallMeetsTheSame has random calls meet the same listener, chain, route and
// cluster on both sides, whatever the services are, but where the two differ on purpose.
func TestAnyCallMeetsTheSame(t *testing.T) {
	t.Parallel()
	calls, excused := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		drafts := drawDrafts(rt)
		list := rapid.SliceOfN(rapid.Custom(drawCall), 60, 60).Draw(rt, "calls")
		var different []string
		t.Run("", func(t *testing.T) {
			w := world{entries: textOf(drafts), workload: app}
			istio, isthmus := w.istio(t), w.isthmus(t)
			for _, c := range list {
				calls++
				if mayDiffer(drafts, c) {
					excused++
					continue
				}
				if theirs, ours := outcomeOf(istio, c), outcomeOf(isthmus, c); theirs != ours {
					different = append(different, describe(c, theirs, ours))
				}
			}
		})
		if len(different) > 0 {
			rt.Fatalf("%s\n%s", textOf(drafts), strings.Join(different, "\n"))
		}
	})
	if excused*4 > calls {
		t.Errorf("%d of %d calls were not compared", excused, calls)
	}
}

// mayDiffer reports whether a call meets one of the differences that other tests hold.
func mayDiffer(drafts []draft, c simulation.Call) bool {
	if c.CallMode == simulation.CallModeInbound {
		return mayDifferInbound(drafts, c)
	}
	shared, sniffed := 0, 0
	for _, d := range drafts {
		p, ok := d.port(c.Port)
		if !ok {
			continue
		}
		host, _, _ := strings.Cut(c.HostHeader, ":")
		switch {
		case p.protocol == "" && c.Port == 3306: // see TestPortsOfServersThatSpeakFirst
			return true
		case len(d.addresses) > 1 && (p.protocol == "" || slices.Contains(d.addresses, host)): // see TestAllAddressesOfAService
			return true
		case carriesRequests(p.protocol) && sharesAddress(drafts, d, p, func(other string) bool { return !carriesRequests(other) }): // see TestRequestsBesideConnections
			return true
		case d.hasBlock() && !carriesRequests(p.protocol) && anyNamed(drafts, c.Port): // see TestRequestsBesideConnections
			return true
		case isTLS(p.protocol) && (d.hasBlock() || sharesAddress(drafts, d, p, isTLS)): // see TestHandshakesOfServices
			return true
		}
		if d.isShared(p) {
			shared++
		}
		if d.isShared(p) && p.protocol == "" {
			sniffed++
		}
	}
	return sniffed > 0 && shared > 1 // see TestRequestsBesideConnections
}

// mayDifferInbound is the same of calls to the workload; see TestInbound.
func mayDifferInbound(drafts []draft, c simulation.Call) bool {
	if c.Port == 3306 {
		return true
	}
	for _, d := range drafts {
		p, ok := d.port(c.Port)
		if !ok || !slices.Contains(d.endpoints, app.addresses[0]) {
			continue
		}
		if p.protocol == "UDP" || c.TLS != simulation.Plaintext && carriesRequests(p.protocol) {
			return true
		}
	}
	return false
}

func (d draft) port(number int) (draftPort, bool) {
	i := slices.IndexFunc(d.ports, func(p draftPort) bool { return p.number == number })
	if i < 0 {
		return draftPort{}, false
	}
	return d.ports[i], true
}

func (d draft) hasBlock() bool {
	return slices.ContainsFunc(d.addresses, func(a string) bool { return strings.Contains(a, "/") })
}

// isShared reports whether a port is reached through the listener of all addresses.
func (d draft) isShared(p draftPort) bool {
	return carriesRequests(p.protocol) || p.protocol != "UDP" && (len(d.addresses) == 0 || d.hasBlock())
}

func carriesRequests(protocol string) bool {
	return protocol == "HTTP" || protocol == "HTTP2" || protocol == "GRPC"
}

func isTLS(protocol string) bool { return protocol == "TLS" || protocol == "HTTPS" }

// anyNamed reports whether calls at a port may name the service that they are for.
func anyNamed(drafts []draft, port int) bool {
	return slices.ContainsFunc(drafts, func(d draft) bool {
		p, ok := d.port(port)
		return ok && (carriesRequests(p.protocol) || isTLS(p.protocol) || p.protocol == "")
	})
}

// sharesAddress reports whether another service of some protocol has an address and port.
func sharesAddress(drafts []draft, d draft, p draftPort, of func(protocol string) bool) bool {
	return slices.ContainsFunc(drafts, func(other draft) bool {
		q, ok := other.port(p.number)
		return ok && other.name != d.name && of(q.protocol) &&
			slices.ContainsFunc(other.addresses, func(a string) bool { return slices.Contains(d.addresses, a) })
	})
}

func describe(c simulation.Call, theirs, ours outcome) string {
	return strings.Join([]string{
		string(c.CallMode) + " " + nameOf(c), "  Istio:   " + theirs.text(), "  Isthmus: " + ours.text(),
	}, "\n")
}

func (o outcome) text() string {
	return strings.Join([]string{o.err, o.listener, o.chain, o.routes, o.host, o.route, o.cluster}, " | ")
}
