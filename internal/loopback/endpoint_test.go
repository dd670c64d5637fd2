package loopback_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/internal/loopback"
)

func TestEndpointsThatMeanTheMachineThatConnects(t *testing.T) {
	t.Parallel()
	for kind, addresses := range map[string][]string{
		loopback.Loopback: {
			"127.0.0.1", "127.255.0.9", "::1", "[::1]", "::ffff:127.0.0.1", "::ffff:7f00:1", "::127.0.0.1", "64:ff9b::7f00:1", "0:0:0:0:0:0:0:1",
			"localhost", "LocalHost.", "a.b.localhost", "*.localhost", "localhost.localdomain", "ip6-loopback",
			"127.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.0.0.1.",
		},
		loopback.LinkLocal:   {"169.254.169.254", "fe80::1", "fe80::1%eth0", "::ffff:169.254.0.1", "224.0.0.1", "ff02::1"},
		loopback.Unspecified: {"0.0.0.0", "::", "0", "0.0.0.1", "127", "::ffff:0.0.0.0", "0x0"},
		loopback.Socket:      {"unix:///run/app.sock", "unix:@abstract"},
		"": {
			"", "10.0.0.1", "128.0.0.1", "2001:db8::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "a.example", "localhost.example", "mylocalhost",
			"10.1", "1.2.3.4.5", "1_0.1", "a.127", "127.0.0.1.evil.example",
		},
	} {
		for _, address := range addresses {
			if got := loopback.EndpointKind(address); got != kind {
				t.Errorf("%q is %q, want %q", address, got, kind)
			}
		}
	}
}
