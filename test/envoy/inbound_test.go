package envoy_test

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// ofServices are the clusters but for those that stand for no service, or lead to an
// Envoy's own workload.
func ofServices(all view) view {
	found := maps.Clone(all)
	maps.DeleteFunc(found, func(name string, _ proxy.Cluster) bool {
		return slices.Contains([]string{"BlackHoleCluster", "PassthroughCluster", "InboundPassthroughCluster"}, name) || strings.HasPrefix(name, "inbound|")
	})
	return found
}

// inboundPorts are those that the sidecar of a workload at an address of a network takes
// connections to, by the documents: docs/design/0023.
func (f *folder) inboundPorts(network, at string) (ports []uint32) {
	for _, o := range f.objects() {
		s, ok := o.(service)
		if !ok || cmp.Or(s.Namespace, shop) != shop || s.Spec.Resolution != "STATIC" && s.Spec.Resolution != "NONE" {
			continue
		}
		for _, e := range s.endpoints(f.objects()) {
			if ip, err := netip.ParseAddr(e.Address); err != nil || !slices.Contains(strings.Split(at, ","), ip.String()) || e.Network != "" && e.Network != network {
				continue
			}
			for _, p := range s.Spec.Ports {
				target := cmp.Or(e.Ports[p.Name], p.TargetPort, p.Number)
				if strings.ToUpper(p.Protocol) != "UDP" && target != 15001 && target != 15006 {
					ports = append(ports, target)
				}
			}
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}
