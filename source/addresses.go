package source

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
)

// A service receives all connections to its addresses. These are the widest address
// blocks that a service may have, unless the configuration allows its source wider ones.
const (
	widestIPv4 = 16
	widestIPv6 = 64
)

// excludesAddresses returns why a service may not have its addresses; empty if it may.
// Removing some addresses would change the meaning of the others: a service without any
// gets all connections of its port. So an address that is outside excludes the service.
func (o Only) excludesAddresses(addresses model.List[string]) (reason string) {
	if addresses.Len() == 0 {
		return ""
	}
	var within []netip.Prefix
	for _, text := range o.Addresses {
		if block, ok := blockOf(text); ok {
			within = append(within, block)
		}
	}
	for text := range addresses.All() {
		block, ok := blockOf(text)
		inside := slices.ContainsFunc(within, func(b netip.Prefix) bool { return b.Bits() <= block.Bits() && b.Contains(block.Addr()) })
		switch {
		case !ok || inside:
		case len(within) > 0:
			return fmt.Sprintf("the source is confined to the addresses %s by its only.addresses, and the service has %s: add that, or have the registry list the service without it",
				strings.Join(o.Addresses, ", "), text)
		case tooWide(block):
			return fmt.Sprintf("its block %s is wider than /%d, and /%d for IPv6: give it a smaller one, or allow the source such blocks with only.addresses",
				text, widestIPv4, widestIPv6)
		}
	}
	return ""
}

func tooWide(block netip.Prefix) bool {
	if block.Addr().Is4() {
		return block.Bits() < widestIPv4
	}
	return block.Bits() < widestIPv6
}

// blockOf parses an address or a block of addresses. An IPv4 address has one form.
func blockOf(text string) (netip.Prefix, bool) {
	block, err := netip.ParsePrefix(text)
	if err != nil {
		ip, err := netip.ParseAddr(text)
		if err != nil || ip.Zone() != "" {
			return netip.Prefix{}, false
		}
		block = netip.PrefixFrom(ip, ip.BitLen())
	}
	if mapped := block.Addr().BitLen() - widthIPv4; block.Addr().Is4In6() && block.Bits() >= mapped {
		block = netip.PrefixFrom(block.Addr().Unmap(), block.Bits()-mapped)
	}
	return block, true
}

const widthIPv4 = 32 // in bits
