package loopback_test

import (
	"net"
	"testing"

	"github.com/isthmus-mesh/isthmus/internal/loopback"
)

func TestHostsOfThisMachine(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "localhost.": true, "127.0.0.1": true, "127.1.2.3": true,
		"::1": true, "[::1]": true, "::ffff:127.0.0.1": true, "127.0.0.1.": true,
		"": false, ".": false, "[": false, "[::1": false, "0.0.0.0": false, "::": false, "192.0.2.1": false, "128.0.0.1": false,
		"evil.example": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false, "localhost..": false,
		"127.1": false, "2130706433": false, "0x7f.0.0.1": false, "::ffff:192.0.2.1": false, "localhost:80": false,
	} {
		if got := loopback.IsHost(host); got != want {
			t.Errorf("%q: %t", host, got)
		}
	}
}

func TestAddressesOfThisMachine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		addr net.Addr
		want bool
	}{
		{&net.TCPAddr{IP: net.IPv4(127, 9, 9, 9)}, true},
		{&net.TCPAddr{IP: net.IPv6loopback}, true},
		{&net.TCPAddr{IP: net.ParseIP("::ffff:127.0.0.1")}, true},
		{&net.UnixAddr{Name: "/run/isthmus.sock"}, true},
		{&net.TCPAddr{IP: net.IPv4zero}, false},
		{&net.TCPAddr{}, false},
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, false},
	} {
		if got := loopback.IsAddr(c.addr); got != c.want {
			t.Errorf("%v: %t", c.addr, got)
		}
	}
	for address, want := range map[string]bool{
		"127.0.0.1:80": true, "localhost:80": true, "[::1]:80": true,
		":80": false, "0.0.0.0:80": false, "[::]:80": false, "isthmus.example:80": false, "127.0.0.1": false,
	} {
		if got := loopback.IsListen(address); got != want {
			t.Errorf("listening on %q: %t", address, got)
		}
	}
}
