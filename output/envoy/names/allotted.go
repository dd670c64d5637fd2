package names

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
)

// Hosts without an address are given one by a hash of their name, in ranges that are nobody's: a
// /8 of 240.0.0.0/4 outside of the /16 in which istiod allots, and a /64.
var (
	allottedIPv4 = netip.MustParsePrefix("241.0.0.0/8")
	allottedIPv6 = netip.MustParsePrefix("2001:2:0:f0f1::/64")
)

// Allotment is the hash of a name, of which its addresses are made. Names of one address of IPv4
// differ in their allotments.
type Allotment uint64

// AllotmentOf returns the allotment of a host.
func AllotmentOf(host string) Allotment {
	sum := sha256.Sum256([]byte(host))
	return Allotment(binary.BigEndian.Uint64(sum[:]))
}

// IPv4 returns the address of IPv4.
func (a Allotment) IPv4() string {
	b := allottedIPv4.Addr().As4()
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])|a.number())
	return netip.AddrFrom4(b).String()
}

// IPv6 returns the address of IPv6.
func (a Allotment) IPv6() string {
	b := allottedIPv6.Addr().As16()
	binary.BigEndian.PutUint64(b[8:], uint64(a))
	return netip.AddrFrom16(b).String()
}

// number is the part of the allotment that an address of IPv4 has.
func (a Allotment) number() uint32 { return uint32(a & (1<<24 - 1)) } //nolint:gosec // 24 bits

// Compare orders allotments by their addresses of IPv4, and names by their allotments.
func (a Allotment) Compare(o Allotment) int {
	switch {
	case a.number() != o.number():
		return int(a.number()) - int(o.number())
	case a < o:
		return -1
	case a > o:
		return 1
	default:
		return 0
	}
}

// ParseAllotted returns the allotments with an address, from the first to the last in their order.
func ParseAllotted(address string) (first, last Allotment, ok bool) {
	ip, err := netip.ParseAddr(address)
	switch {
	case err == nil && allottedIPv4.Contains(ip):
		b := ip.As4()
		number := Allotment(binary.BigEndian.Uint32(b[:]) & (1<<24 - 1))
		return number, number | ^Allotment(1<<24-1), true
	case err == nil && allottedIPv6.Contains(ip):
		b := ip.As16()
		only := Allotment(binary.BigEndian.Uint64(b[8:]))
		return only, only, true
	default:
		return 0, 0, false
	}
}
