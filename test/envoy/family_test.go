package envoy_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// TestNamesResolveToAddressesOfTheProxysFamily has Envoys of each family, and of both, resolve a
// name that has addresses of both, and IP addresses that a registry gave instead of a name. An
// explanation says of each host whether the Envoy reaches it.
func TestNamesResolveToAddressesOfTheProxysFamily(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	for host, address := range map[string]string{"names.example.com": "localhost", "four.example.com": "127.0.0.1", "six.example.com": "::1", "mapped.example.com": "::ffff:127.0.0.1"} {
		m.Folder.write(t, host, service{Name: host, Spec: serviceSpec{
			Hosts: []string{host}, Resolution: "DNS", Ports: []port{{Number: 80, Name: "main"}}, Endpoints: []endpoint{{Address: address}},
		}})
	}
	i := m.Serve("")
	for workload, test := range map[string]struct {
		own  string
		want map[string]string
	}{
		"ipv4": {"10.0.0.1", map[string]string{"names": "127.0.0.1", "four": "127.0.0.1", "mapped": "127.0.0.1"}},
		"ipv6": {"2001:db8::1", map[string]string{"names": "::1", "six": "::1", "four": "127.0.0.1", "mapped": "127.0.0.1"}},
		"both": {"2001:db8::1,10.0.0.1", map[string]string{"names": "127.0.0.1", "four": "127.0.0.1", "mapped": "127.0.0.1", "six": "::1"}},
	} {
		p, err := proxy.Start(t.Context(), proxy.Config{
			Program: programs.envoy, Isthmus: programs.isthmus, Dir: m.Dir, Workload: workload, Namespace: shop, IP: test.own,
			Delta: true, Listeners: true, ControlPlanes: []netip.AddrPort{i.XDS},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Stop)
		for _, name := range []string{"names", "four", "six", "mapped"} {
			host := name + ".example.com"
			var want []string
			if address, ok := test.want[name]; ok {
				want = []string{address}
			}
			await(t, "the name to be resolved", func() error {
				got, err := p.ResolvedTo(t.Context(), clusterName(host, 80))
				if err == nil && !slices.Equal(got, want) {
					err = fmt.Errorf("an Envoy at %s resolves %s to %v, not %v", test.own, host, got, want)
				}
				return err
			})
			if e := m.explained(m.idOf(workload), host, 80); (e.State == "reached") != (want != nil) {
				t.Errorf("an Envoy at %s resolves %s to %v, and the explanation is %s: %s", test.own, host, want, e.State, e.Reason)
			}
		}
	}
}
