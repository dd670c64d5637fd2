package loopback

import (
	"net"
	"net/netip"
)

// Remote is what clients without an identity are distinguished by; empty on
// this machine.
func Remote(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return "" // a socket of this machine
	}
	ip, _ := netip.AddrFromSlice(tcp.IP)
	if ip = ip.Unmap(); ip.IsLoopback() {
		return ""
	}
	if ip.Is6() { // whoever has one address of a network has all of them
		return netip.PrefixFrom(ip.WithZone(""), 64).Masked().String()
	}
	return ip.String()
}
