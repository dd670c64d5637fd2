package xds

import (
	"net/netip"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/isthmus-mesh/isthmus/model"
)

// mostAddresses bounds the kept addresses of a client: the first ones.
const mostAddresses = 8

// addressesOf reads the addresses of the workload from the metadata that Istio's proxies
// send, otherwise the address in a node id of Istio's form. As in istiod, one invalid
// address invalidates the whole list.
func addressesOf(node *corev3.Node) []string {
	if addresses := validAddresses(node.GetMetadata().GetFields()["INSTANCE_IPS"].GetStringValue()); addresses != nil {
		return addresses
	}
	if parts := strings.Split(node.GetId(), "~"); len(parts) == 4 {
		return validAddresses(parts[1])
	}
	return nil
}

// validAddresses returns the addresses of a comma-separated list; nil if any of them is
// invalid.
func validAddresses(list string) (addresses []string) {
	for text := range strings.SplitSeq(list, ",") {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return nil
		}
		if len(addresses) < mostAddresses {
			addresses = append(addresses, ip.WithZone("").String()) // a copy, which does not keep the message in memory
		}
	}
	return addresses
}

// extensionsOf returns the wanted extensions that a client declares.
func extensionsOf(node *corev3.Node, wanted []string) (has []string) {
	for _, name := range wanted {
		if slices.ContainsFunc(node.GetExtensions(), func(e *corev3.Extension) bool { return e.GetName() == name }) {
			has = append(has, name)
		}
	}
	return has
}

// localityOf reads a client's declared locality.
func localityOf(l *corev3.Locality) model.Locality {
	return model.Locality{Region: l.GetRegion(), Zone: l.GetZone(), SubZone: l.GetSubZone()}
}
