package envoy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
)

// Of services that all see, one is said to be shut out where, and only where, the
// listener turns it away.
func TestThoseShutOutAreThoseThatListenersTurnAway(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var services []claiming
		for n := range rapid.IntRange(1, 7).Draw(t, "services") {
			services = append(services, claiming{
				host: fmt.Sprintf("s%d.example", n), number: 90,
				protocol:  rapid.SampledFrom([]string{"MYSQL", "MONGO", "TCP", "HTTP", "TLS", ""}).Draw(t, "protocol"),
				addresses: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "10.1.0.0/16", "10.1.1.0/24"}), 0, 3, rapid.ID).Draw(t, "addresses"),
			})
		}
		now := snapshotOfClaims(services...)
		said := map[string]bool{}
		for _, line := range conflictsSaid(now, NewSettings()) {
			host, rest, _ := strings.Cut(line, ": ")
			if names, found := strings.CutPrefix(rest, "ports[90].protocol: connections to port 90 of "); found {
				names, _, _ = strings.Cut(names, " are ")
				for name := range strings.SplitSeq(names, ", ") {
					said[host+" at "+name] = true
				}
			}
		}
		if want := turnedAway(now.Port(90)); !maps.Equal(want, said) {
			t.Fatalf("-turned away +said: %s", gocmp.Diff(want, said))
		}
	})
}

// turnedAway are services that listeners have no place for, with the address.
func turnedAway(index *catalog.PortServices) map[string]bool {
	all := map[string][]catalog.ServiceDefinition{}
	for s := range index.All() {
		for address := range (proxy{}).listensAt(s, index) {
			all[address] = append(all[address], s)
		}
	}
	found := map[string]bool{}
	for address, services := range all {
		slices.SortFunc(services, func(a, b catalog.ServiceDefinition) int { return catalog.Address.Owner("", a, b) })
		name, shared := address, address == (proxy{}).shared()
		if shared {
			name = otherAddresses
		}
		names := shared || handshakes(services, index.Number) > 1
		l := layout{taken: claims{}}
		for _, s := range services {
			port, _ := s.Port(index.Number)
			kind := trafficOf(port)
			if l.turnsAway(port, kind == httpOnly || kind == sniffed || kind == tlsOnly && names) {
				found[s.Key.Host+" at "+name] = true
			}
			l.take(s, index.Number, shared, names)
		}
	}
	return found
}
