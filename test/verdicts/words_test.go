package verdicts

import "strings"

// x returns n letters.
func x(n int) string { return strings.Repeat("x", n) }

// The words that documents are made of: first what is likely to be right, then
// what is likely not, and whatever lies on a border.
var (
	hosts = list{
		"a.example", "b.example", "*.c.example", "short", "A.Example.", "xn--bcher-kva.example",
		"*", "**", "*.", "*a", "*a.example", "*-a.example", "*-.example", "*--a.example", "a*.example", "a.*.example", "*.*.example", "-a.example",
		"a-.example", "a..example", ".example", "a.", ".", "..", "10", "a.10", "a.10.", "10.0.0.1", "::1", "a_b.example", "a b", "a/b", "ä.example",
		"a.example:80", "*.10", "+1", "a.+1", "a.99999999999999999999",
		x(63), x(64), x(63) + ".example", x(64) + ".example", "*" + x(62) + ".example", "*" + x(63) + ".example", "*-" + x(61) + ".e", "*-" + x(62) + ".e",
		strings.Repeat("a.", 127) + "a", strings.Repeat("a.", 127) + "ab", strings.Repeat("a.", 128),
	}
	addresses = list{
		"10.0.0.1", "10.0.0.2", "2001:db8::1", "10.0.0.0/8", "2001:db8::/32",
		"10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/8/8", "/", "/8", "10.0.0.0/", "10.0.0", "010.0.0.1", "10.0.0.1 ", "::ffff:10.0.0.1", "fe80::1%eth0",
		"fe80::1%eth0/64", "[::1]", "a.example", "*", "10.0.0.0/08", "::/0", "256.0.0.1", x(64), x(65), "ä" + x(63),
	}
	endpoints = list{
		"10.0.0.1", "10.0.0.2", "2001:db8::1", "a.example", "unix:///run/a.sock", "unix://@a",
		"", "*", "*.a.example", "unix://", "unix:///", "unix://@", "unix://@/", "unix://a", "unix:///a/", "unix:/a", "UNIX:///a", "unix://\u00e4", "unix:///a/../b",
		"10.0.0.0/8", "10.0.0", "a.", "a..b", "-", "10", "a b", "[::1]", "fe80::1%eth0", "a.example:80",
		"unix:///" + x(248), "unix:///" + x(249), strings.Repeat("a.", 127) + "a", strings.Repeat("ä", 256), strings.Repeat("ä", 257),
	}
	egressNamespaces = list{".", "*", "prod", "~", "~*", "~.", "~prod", "", "~~", "Prod", "a.b", "a b", "**", "-", "..", x(63), x(64)}
	exports          = list{
		".", "*", "~", "default", "prod", "other",
		"", "Prod", "a.b", "a b", "-", "..", "**", "~prod", x(63), x(64),
	}
	protocols = list{
		"HTTP", "HTTPS", "HTTP2", "GRPC", "TLS", "TCP", "http", "grpc-web", "GRPC-Web", "tcp", "Mongo", "REDIS", "MySQL", "http_proxy",
		"", "UDP", "HBONE", "DoubleHBONE", "doublehbone", "HTTP3", "HTTP/2", "HTTP ", "UnsupportedProtocol", "tls", "https", x(256), x(257),
	}
	portNames = list{"http", "tcp", "grpc", "a-b", "A1", "", "a_b", "-a", "a-", "a.b", "*", "a b", "ä", x(62), x(63), x(64), x(256), x(257)}
	labelKeys = list{
		"app", "tier", "example.com/app", "a.b_c-D", "1",
		"", "-", "a b", "*", "a*", "/a", "a/", "a/b/c", "Example.com/app", "example..com/app", "-a/b", "a_b/c", "10/a", "a.10/b", "example.com./a", "ä",
		x(63), x(64), x(63) + "/a", x(64) + "/a", x(253) + "/a", x(254) + "/a", "a/" + x(63), "a/" + x(64),
	}
	labelValues = list{"web", "1", "", "a.b_c-D", "-", "a b", "*", "a*", "a/b", "ä", ".a", x(63), x(64), strings.Repeat("ä", 63), strings.Repeat("ä", 64)}
	durations   = list{
		"1s", "10ms", "1m30s", "1h", "0.5s", "1ms",
		"0s", "0", "0ms", "", "1", "s", "-1s", "-1ms", "500us", "-500us", "999us", "1500us", "1.5ms", "1.0000001s", "1ns", "+1s", "1S", "1 s", "1d", "2562047h", "3000000h", "1µs", ".5s", "1e3s",
	}
	defaults = list{
		"127.0.0.1:8080", ":80", "0.0.0.0:80", "[::1]:80", "[::]:80", "unix:///run/a.sock",
		"", "unix://", "unix://a", "unix:///a/", "unix://@", "unix://@a/", "localhost:80", "10.0.0.1:80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65535", "127.0.0.1:65536",
		"127.0.0.1:+80", "127.0.0.1:-80", "127.0.0.1:http", "::1:80", "[127.0.0.1]:80", "80", ":", "127.0.0.1:080",
	}
	binds = list{
		"127.0.0.1", "0.0.0.0", "::", "unix:///run/a.sock", "unix://@a",
		"", "unix://", "unix://a", "unix:///a/", "localhost", "10.0.0.0/8", "[::1]", "127.0.0.1:80",
	}
	headers = list{"X-Probe", "a", "", "x_a", "a b", "a:", "ä"}
	words   = list{"", "a", "a.example", "*", "-", "a b", "eu/eu-1/a", "ä", "v1", "x-y", x(63), x(64), x(253), x(254), x(2048), x(2049)}

	// numbers in all the ways YAML knows.
	numbers = list{
		80, 443, 8080, 1, 65535,
		0, 65536, -1, -80, 2147483647, 2147483648, 4294967295, 4294967296, -2147483648, -2147483649,
		bare("80.0"), bare("8e1"), bare("80.5"), bare("0x50"), bare("+80"), bare("-0"), bare("0.0"), bare("080"), bare("0o120"), bare("8_0"), bare("1e400"), bare("18446744073709551616"), bare("1e19"), bare(".8e2"), bare("80."), "80",
	}
	booleans = list{true, false, bare("yes"), bare("off"), bare("True"), bare("y"), "true", 1}
	// misfits are what a field may be given whatever it is.
	misfits = list{nil, bare(""), bare("~"), 1, 1.5, true, "", "a", object{}, list{}, list{nil}, object{"a": nil}, list{object{}}, object{"a": "b"}, list{"a"}, bare("2001-01-01"), bare("yes"), bare("1:30"), bare(".inf")}
)

// wordsFor finds the words of a field by the end of its path; an entry of a
// list or map is found under the name of that.
var wordsFor = map[string]list{
	"spec.hosts":            hosts,
	"spec.addresses":        addresses,
	"exportTo":              exports,
	"address":               endpoints,
	"protocol":              protocols,
	"port.name":             portNames,
	"ports.name":            portNames,
	"labels":                labelValues,
	"annotations":           labelValues,
	"defaultEndpoint":       defaults,
	"bind":                  binds,
	"httpHeaders.name":      headers,
	"scheme":                {"HTTP", "HTTPS", "", "http", "TCP"},
	"egressProxy.host":      hosts,
	"egressProxy.subset":    portNames,
	"interval":              durations,
	"timeout":               durations,
	"time":                  durations,
	"connectTimeout":        durations,
	"idleTimeout":           durations,
	"maxConnectionDuration": durations,
	"command":               {"true", "a", ""},
}

// keysFor are the names that the entries of a map are given.
var keysFor = map[string]list{"labels": labelKeys, "annotations": labelKeys, "ports": portNames}
