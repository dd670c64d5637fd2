package names

import (
	"testing"
)

func TestNamesRoundTrip(t *testing.T) {
	for _, host := range []string{"a", "reviews.shop.svc", "*.example.com", "*", "A.Upper", "with|bar", "a||b", "fd00::1", ":", "|", "ü"} {
		for _, port := range []uint32{0, 1, 9, 10, 80, 65535, 4294967295} {
			if h, p, ok := ParseCluster(Cluster(host, port)); h != host || p != port || !ok {
				t.Errorf("cluster name of %q %d is read as %q %d %t", host, port, h, p, ok)
			}
			if h, p, ok := ParseListener(Listener(host, port)); h != host || p != port || !ok {
				t.Errorf("listener name of %q %d is read as %q %d %t", host, port, h, p, ok)
			}
			if got, want := clusterSize(host, port), len(Cluster(host, port)); got != want {
				t.Errorf("size of %q is %d, want %d", Cluster(host, port), got, want)
			}
		}
	}
}

func TestNamesThatNothingHas(t *testing.T) {
	for _, name := range []string{
		"", "*", "outbound", "outbound|", "outbound|80", "outbound|80|", "outbound|80||", "outbound|80|v1|h",
		"outbound|080||h", "outbound|00||h", "outbound|+80||h", "outbound|-1||h", "outbound| 80||h", "outbound|8_0||h",
		"outbound|0x50||h", "outbound|4294967296||h", "outbound|||h", "inbound|80||h", "Outbound|80||h", "outbound|80|h",
		"xoutbound|80||h",
	} {
		if h, p, ok := ParseCluster(name); ok {
			t.Errorf("%q is read as %q %d", name, h, p)
		}
	}
	for _, name := range []string{"", ":", ":80", "h", "h:", "h:080", "h:+80", "h:http", "h:80:", "h:4294967296", "h: 80"} {
		if h, p, ok := ParseListener(name); ok {
			t.Errorf("%q is read as %q %d", name, h, p)
		}
	}
}

func FuzzNames(f *testing.F) {
	for _, seed := range []string{"outbound|80||h", "outbound|080||h", "outbound|80|v1|h", "h:80", "::1:80", "outbound|0||||", ":"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if host, port, ok := ParseCluster(name); ok && (host == "" || Cluster(host, port) != name) {
			t.Errorf("cluster %q is read as %q %d", name, host, port)
		}
		if host, port, ok := ParseListener(name); ok && (host == "" || Listener(host, port) != name) {
			t.Errorf("listener %q is read as %q %d", name, host, port)
		}
		if host, port, ok := ParseCluster(Cluster(name, 80)); name != "" && (!ok || host != name || port != 80) {
			t.Errorf("host %q of a cluster is read as %q %d", name, host, port)
		}
		if host, port, ok := ParseListener(Listener(name, 80)); name != "" && (!ok || host != name || port != 80) {
			t.Errorf("host %q of a listener is read as %q %d", name, host, port)
		}
	})
}
