package conflict

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Notices returns, for a snapshot, the services' ports at which a sidecar with
// INTERCEPTION_MODE NONE has no listener, by the reason. Equal clients are looked at once.
func Notices(now *catalog.Snapshot, root string) func(world.Client) []output.Notice {
	known := map[reach.Client][]output.Notice{}
	return func(c world.Client) []output.Notice {
		p := node.ProxyOf(c)
		if c.Kind != reach.KindEnvoy || p.Role != node.Sidecar || p.Mode != node.None {
			return nil
		}
		v := reach.Client{Viewer: catalog.Viewer{Namespace: c.Namespace, Scope: now.ScopeOf(c.Namespace, c.Labels, root)}, Proxy: p}
		list, found := known[v]
		if !found {
			list = unopened(now, v)
			known[v] = list
		}
		return list
	}
}

// outboundField is where a node lists the ports of loopback at which its sidecar listens for
// services.
const outboundField = "ISTHMUS_OUTBOUND"

// mostPortsShown bounds the ports that a notice names.
const mostPortsShown = 20

// unopened lists why ports of services have no listener on loopback.
func unopened(now *catalog.Snapshot, v reach.Client) (list []output.Notice) {
	var unlisted, unprivileged, own []string
	for index := range now.Ports() {
		number := index.Number
		if v.Proxy.Opens(number) || !isCalled(v, index) {
			continue
		}
		text := strconv.FormatUint(uint64(number), 10)
		switch v.Proxy.Obstructs(number) {
		case node.Unbindable:
			unprivileged = append(unprivileged, text)
		case node.EnvoysOwn:
			own = append(own, text)
		case node.Unobstructed:
			unlisted = append(unlisted, text)
		}
	}
	for _, why := range []struct {
		ports       []string
		where, text string
	}{
		{unlisted, outboundField, "the node does not list these ports, so the sidecar does not listen there and the workload cannot call services at them; " +
			"add the ports to " + outboundField + " in the node metadata, or write all (isthmus bootstrap envoy --outbound)"},
		{unprivileged, "UNPRIVILEGED_POD", fmt.Sprintf("the sidecar cannot bind ports below %d, so the workload cannot call services at them; "+
			"call the services at another port, or let the sidecar bind low ports and remove UNPRIVILEGED_POD", world.FirstUnprivilegedPort)},
		{own, "", "Envoys use these ports themselves, so the workload cannot call services at them; give the services another port"},
	} {
		if len(why.ports) > 0 {
			list = append(list, output.Notice{Object: portsText(why.ports), Where: why.where, Text: why.text})
		}
	}
	return list
}

// isCalled reports whether a view has a service at a port that connections are made to.
func isCalled(v reach.Client, index *catalog.PortServices) bool {
	for s := range index.Visible(v.Viewer) {
		if port, _ := s.Port(index.Number); reach.TrafficOf(port) != reach.NotTCP && reach.HasCluster(s, index.Number) {
			return true
		}
	}
	return false
}

// portsText names some ports.
func portsText(ports []string) string {
	text, more := "ports ", ""
	if len(ports) == 1 {
		text = "port "
	}
	if n := len(ports) - mostPortsShown; n > 0 {
		ports, more = ports[:mostPortsShown], fmt.Sprintf(" and %d more", n)
	}
	return text + strings.Join(ports, ", ") + more
}
