package names

import (
	"strconv"
	"strings"
)

// DNSListener is the name of the listener that answers lookups.
const DNSListener = "dns"

// VirtualInbound is the listener that connections to the workload are redirected to.
const VirtualInbound = "virtualInbound"

// VirtualOutbound is the listener that connections are redirected to. It hands them over to
// the listener of their original address.
const VirtualOutbound = "virtualOutbound"

// HighestPort is the highest port number.
const HighestPort = 65535

// Socket returns the name of the listener of an address and port.
func Socket(address string, port uint32) string {
	return address + "_" + strconv.FormatUint(uint64(port), 10)
}

// ParseSocket parses a name of [Socket].
func ParseSocket(name string) (address string, port uint32, ok bool) {
	at := strings.LastIndexByte(name, '_')
	if at <= 0 {
		return "", 0, false
	}
	port, ok = ParsePort(name[at+1:])
	return name[:at], port, ok
}

// Addresses of listeners that services share.
const (
	AnyIPv4   = "0.0.0.0"
	AnyIPv6   = "::"
	LocalIPv4 = "127.0.0.1"
	LocalIPv6 = "::1"
)

// Addresses in the answers to lookups of services without an address of their own, where
// connections are redirected. They are in the ranges that Istio reserves for that.
const (
	UnroutableIPv4 = "240.240.0.1"
	UnroutableIPv6 = "2001:2::f0f0:1"
)
