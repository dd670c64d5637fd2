package kubernetes

import "testing"

func TestAddressesAreReadAsKubernetesReadsThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"10.2.0.1": "10.2.0.1", "010.002.000.001": "10.2.0.1", "10.2.0.000": "10.2.0.0", "000010.2.0.1": "10.2.0.1", "10.2.0.08": "10.2.0.8",
		"::ffff:10.2.0.1": "10.2.0.1", "::FFFF:010.2.0.1": "10.2.0.1", "FD00:0::1": "fd00::1", "64:ff9b::010.2.0.1": "64:ff9b::a02:1",
		"": "", "0": "", "10.2.0": "", "10.2.0.": "", "10..0.1": "", "10.2.0.0256": "", "10.2.0.1.": "", "a.example": "", "fe80::1%eth0": "", "None": "",
		"0x0a.2.0.1": "", "10.2.0.1/32": "",
	} {
		ip, ok := parseAddress(text)
		if ok != (want != "") || ok && ip.String() != want {
			t.Errorf("%q is %v (%t), want %q", text, ip, ok, want)
		}
	}
}
