package envoy

import (
	"slices"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// A connection to loopback does not say which address it was meant for. So the oldest
// service of a port has all connections, whether others have addresses, blocks or neither.
// The conflicts of the others name it.
func TestTheOldestServiceHasAPortOfLoopback(t *testing.T) {
	t.Parallel()
	block, all := []string{"10.1.0.0/16"}, []string{"0.0.0.0/0"}
	for _, test := range []struct {
		name     string
		services []serviceSpec // from the oldest to the youngest
		leads    string        // where connections go that are neither requests nor handshakes
		routes   bool
		lost     []string // host: field: beginning of the reason
	}{
		{"a block", []serviceSpec{{host: "db", number: 90, protocol: "TCP", addresses: block}}, "db", false, nil},
		{
			"all addresses beside an older service",
			[]serviceSpec{
				{host: "old", number: 90, protocol: "TCP"}, {host: "all", number: 90, protocol: "TCP", addresses: all},
			},
			"old", false,
			[]string{"all: ports[90].addresses: connections to port 90 of loopback with INTERCEPTION_MODE NONE go to old of namespace a"},
		},
		{
			"an address beside an older block",
			[]serviceSpec{
				{host: "block", number: 90, protocol: "TCP", addresses: block}, {host: "one", number: 90, protocol: "TCP", addresses: []string{"10.0.0.1"}},
			},
			"block", false,
			[]string{"one: ports[90].addresses: connections to port 90 of loopback with INTERCEPTION_MODE NONE go to"},
		},
		{
			"requests beside connections",
			[]serviceSpec{
				{host: "raw", number: 90, protocol: "TCP"}, {host: "web", number: 90, protocol: "HTTP"}, {host: "any", number: 90},
			},
			"raw", true,
			[]string{"any: ports[90].addresses: connections to port 90 of loopback with INTERCEPTION_MODE NONE go to"},
		},
		{
			"a server that speaks first beside older requests",
			[]serviceSpec{
				{host: "web", number: 90, protocol: "HTTP"}, {host: "db", number: 90, protocol: "MYSQL"}, {host: "raw", number: 90, protocol: "TCP"},
			},
			"raw", true,
			[]string{"db: ports[90].protocol: connections to port 90 of loopback with INTERCEPTION_MODE NONE are inspected, to find those of web of namespace a"},
		},
		{
			"requests beside an older server that speaks first",
			[]serviceSpec{
				{host: "db", number: 90, protocol: "MYSQL"}, {host: "web", number: 90, protocol: "HTTP"}, {host: "raw", number: 90, protocol: "TCP"},
			},
			"db", false,
			[]string{
				"raw: ports[90].addresses: connections to port 90 of loopback with INTERCEPTION_MODE NONE go to",
				"web: ports[90].protocol: connections to port 90 of loopback with INTERCEPTION_MODE NONE are not inspected, since the server of db of namespace a may speak first",
			},
		},
		{
			"services of other namespaces alone", []serviceSpec{
				{host: "theirs", namespace: "b", exportTo: ".", number: 90, protocol: "TCP"}, {host: "ours", exportTo: ".", number: 90, protocol: "TCP"},
			}, "ours", false, nil,
		},
		{
			"a service that some namespace sees beside an older one",
			[]serviceSpec{
				{host: "theirs", namespace: "b", exportTo: ".", number: 90, protocol: "TCP"}, {host: "ours", number: 90, protocol: "TCP"},
			},
			"ours", false,
			[]string{"ours: ports[90].addresses: connections to port 90 of loopback with INTERCEPTION_MODE NONE go to theirs of namespace b"},
		},
		{"ports of Envoy's own", []serviceSpec{{host: "x", number: 15001, protocol: "TCP"}, {host: "y", number: 15001, protocol: "TCP"}}, "", false, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			snapshot := snapshotOfServices(test.services...)
			of := NewTranslator().LoopbackConflicts(t.Context(), snapshot)
			var lost []string
			for s := range snapshot.Services() {
				for _, c := range of(s) {
					lost = append(lost, s.Key.Host+": "+c.Field+": "+c.Reason)
				}
			}
			slices.Sort(lost)
			for i, want := range test.lost {
				if i < len(lost) && strings.HasPrefix(lost[i], want) {
					lost[i] = want
				}
			}
			if diff := gocmp.Diff(test.lost, lost); diff != "" {
				t.Errorf("the conflicts are (- want, + got):\n%s", diff)
			}

			c := world.Client{Kind: reach.KindEnvoy, Namespace: "a", Proxy: world.Proxy{Role: "sidecar", Interception: "NONE", Outbound: world.AllPorts()}}
			l := &listenerv3.Listener{}
			if found := readInto(t, NewWorld(snapshot, true, "root"), ListenerType, c, "127.0.0.1_90", l); found != (test.leads != "") {
				t.Fatalf("there is a listener: %t", found)
			} else if !found {
				return
			}
			chains := l.GetFilterChains()
			if rest := l.GetDefaultFilterChain(); rest != nil {
				chains = []*listenerv3.FilterChain{rest}
			}
			for _, chain := range l.GetFilterChains() {
				if len(chain.GetFilterChainMatch().GetPrefixRanges()) > 0 {
					t.Errorf("a chain asks for an address: %v", chain.GetFilterChainMatch())
				}
			}
			leads := reachedThrough(&listenerv3.Listener{FilterChains: chains}, wire.ClusterURL)
			if want := []string{names.Cluster(test.leads, 90)}; !slices.Equal(leads, want) {
				t.Errorf("connections go to %v, not %v", leads, want)
			}
			if routes := reachedThrough(l, wire.RouteURL); (len(routes) > 0) != test.routes {
				t.Errorf("it has routes %v", routes)
			}
		})
	}
}
