package loopback

import (
	"net"
	"net/netip"
)

// Remote returns the key that distinguishes clients without an identity; empty on this
// machine.
func Remote(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return "" // a socket of this machine
	}
	ip, _ := netip.AddrFromSlice(tcp.IP)
	if ip = ip.Unmap(); ip.IsLoopback() {
		return ""
	}
	if ip.Is6() { // the owner of one IPv6 address has all addresses of its /64 network
		return netip.PrefixFrom(ip.WithZone(""), 64).Masked().String()
	}
	return ip.String()
}
