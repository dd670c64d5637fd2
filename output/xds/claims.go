package xds

import (
	"net/netip"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/isthmus-mesh/isthmus/model"
)

// mostAddresses bounds what is kept of a client's addresses: the first ones.
const mostAddresses = 8

// addressesOf reads the addresses of the workload from the metadata Istio's proxies
// send, else the one in a node id of Istio's form. As in istiod one that is invalid
// makes the whole list so.
func addressesOf(node *corev3.Node) []string {
	if addresses := validAddresses(node.GetMetadata().GetFields()["INSTANCE_IPS"].GetStringValue()); addresses != nil {
		return addresses
	}
	if parts := strings.Split(node.GetId(), "~"); len(parts) == 4 {
		return validAddresses(parts[1])
	}
	return nil
}

// validAddresses are those of a list that is separated by commas; nil if one of
// them is invalid.
func validAddresses(list string) (addresses []string) {
	for text := range strings.SplitSeq(list, ",") {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return nil
		}
		if len(addresses) < mostAddresses {
			addresses = append(addresses, ip.WithZone("").String()) // and not a part of the message
		}
	}
	return addresses
}

// extensionsOf are those of the wanted extensions that a client says it has.
func extensionsOf(node *corev3.Node, wanted []string) (has []string) {
	for _, name := range wanted {
		if slices.ContainsFunc(node.GetExtensions(), func(e *corev3.Extension) bool { return e.GetName() == name }) {
			has = append(has, name)
		}
	}
	return has
}

// localityOf reads where a client says it runs.
func localityOf(l *corev3.Locality) model.Locality {
	return model.Locality{Region: l.GetRegion(), Zone: l.GetZone(), SubZone: l.GetSubZone()}
}
