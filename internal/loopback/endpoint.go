package loopback

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// The kinds of addresses that differ with the connecting machine.
const (
	Loopback    = "a loopback address"
	LinkLocal   = "a link-local address"
	Unspecified = "the unspecified address"
	Socket      = "a unix socket"
)

// localNames are names of loopback that systems have in /etc/hosts, beside localhost.
var localNames = []string{
	"localhost", "localhost.localdomain", "localhost4", "localhost4.localdomain4", "localhost6", "localhost6.localdomain6",
	"ip6-localhost", "ip6-loopback",
}

// EndpointKind returns the kind of an endpoint's address if it means the connecting machine
// or a neighbour on its link. Otherwise it is empty. IPv4 addresses also count in IPv6
// form, and in the short forms that resolvers read, such as 127.1. Any other name is for
// DNS to resolve.
func EndpointKind(address string) string {
	if strings.HasPrefix(address, "unix:") {
		return Socket
	}
	name := strings.ToLower(strings.TrimSuffix(address, "."))
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(name, "["), "]"))
	if err == nil {
		return addrKind(ip)
	}
	if ip, ok := shortIPv4(name); ok {
		return addrKind(ip)
	}
	if strings.HasSuffix(name, ".localhost") || slices.Contains(localNames, name) {
		return Loopback
	}
	return ""
}

func addrKind(ip netip.Addr) string {
	ip = inner(ip.WithZone("").Unmap())
	switch {
	case ip.IsLoopback():
		return Loopback
	case ip.IsLinkLocalUnicast(), ip.IsLinkLocalMulticast(), ip.IsInterfaceLocalMulticast():
		return LinkLocal
	case ip.IsUnspecified(), ip.Is4() && ip.As4()[0] == 0:
		return Unspecified
	default:
		return ""
	}
}

// embedding are the prefixes of IPv6 addresses that end in an IPv4 address: of NAT64, and
// of addresses that are compatible with IPv4.
var embedding = [...]netip.Prefix{netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("::/96")}

// inner returns the IPv4 address that an IPv6 address embeds, or the address itself.
func inner(ip netip.Addr) netip.Addr {
	if ip.Is4() || ip.IsLoopback() || ip.IsUnspecified() {
		return ip
	}
	for _, prefix := range embedding {
		if prefix.Contains(ip) {
			all := ip.As16()
			return netip.AddrFrom4([4]byte(all[12:]))
		}
	}
	return ip
}

// shortIPv4 parses the forms of inet_aton: one to four numbers, decimal, octal or
// hexadecimal, where the last one fills the remaining bytes.
func shortIPv4(text string) (netip.Addr, bool) {
	if text == "" || text[0] < '0' || text[0] > '9' {
		return netip.Addr{}, false
	}
	parts := strings.Split(text, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var ip uint64
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 0, 32)
		last := i == len(parts)-1
		most := uint64(1)<<8 - 1
		if last {
			most = 1<<(8*(4-i)) - 1
		}
		if err != nil || n > most || strings.Contains(part, "_") {
			return netip.Addr{}, false
		}
		if last {
			ip |= n
		} else {
			ip |= n << (8 * (3 - i))
		}
	}
	return netip.AddrFrom4([4]byte{byte(ip >> 24), byte(ip >> 16), byte(ip >> 8), byte(ip)}), true //nolint:gosec // each is one byte of it
}
