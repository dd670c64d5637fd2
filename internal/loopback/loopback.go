// Package loopback recognizes the names and addresses that mean this machine alone, for
// listeners and for peers.
//
// It looks nothing up. Its functions have no state.
package loopback

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// IsHost reports whether the host of a URL or of a listen address, without a port, is this
// machine. That is localhost in any case, with or without the final dot, or a loopback
// address, with or without the brackets of IPv6. Other names may resolve to loopback by the
// choice of their owner, and do not count.
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

// IsAddr reports whether the address of a connection or listener belongs to this machine
// alone. Addresses other than TCP, such as unix sockets, do.
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

// ValidListen returns why a text is no host and port to listen on; nil if it is one. The
// host may be left out, and the port may be 0 for a free one.
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
