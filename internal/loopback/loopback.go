// Package loopback knows what of a network is this machine alone: the names and
// the addresses by which nobody else can be meant, and nobody else can ask.
//
// It looks nothing up. Everything in it is a function without state.
package loopback

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// IsHost reports whether the host of a URL or of an address to listen on, without
// a port, is this machine: localhost in any case, with or without the final dot, or
// an address of loopback, with or without the brackets of IPv6. Other names may
// be resolved to loopback by whoever controls them, and are not.
func IsHost(host string) bool {
	if bare, ok := strings.CutPrefix(host, "["); ok {
		if host, ok = strings.CutSuffix(bare, "]"); !ok {
			return false
		}
	}
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(host, "."))
	return err == nil && addr.Unmap().IsLoopback()
}

// IsAddr reports whether only this machine can be at an address of a connection,
// or reach one that is listened on. Whatever is not TCP, such as a unix socket,
// is on this machine.
func IsAddr(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback()
}

// IsListen reports whether a host and port to listen on, as in "127.0.0.1:8080",
// can be reached from this machine only.
func IsListen(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && IsHost(host)
}

// ValidListen reports why a text is no host and port to listen on; nil if it is.
// The host may be left out, and the port may be 0 for a free one.
func ValidListen(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not a host and port", address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q in %q is not a port from 0 to 65535", port, address)
	}
	return nil
}
