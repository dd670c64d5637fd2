package envoy_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// TestNamesResolveToAddressesOfTheProxysFamily has Envoys of either family of
// addresses resolve a name that has both.
func TestNamesResolveToAddressesOfTheProxysFamily(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	m.Folder.write(t, "names", service{Spec: serviceSpec{
		Hosts: []string{"names.example.com"}, Resolution: "DNS", Ports: []port{{Number: 80, Name: "main"}},
		Endpoints: []endpoint{{Address: "localhost"}},
	}})
	i := m.Serve("")
	for workload, test := range map[string]struct {
		own, want string
	}{
		"ipv4": {"10.0.0.1", "127.0.0.1"},
		"ipv6": {"2001:db8::1", "::1"},
	} {
		p, err := proxy.Start(t.Context(), proxy.Config{
			Program: programs.envoy, Isthmus: programs.isthmus, Dir: m.Dir, Workload: workload, Namespace: shop, IP: test.own,
			Delta: true, ControlPlanes: []netip.AddrPort{i.XDS},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Stop)
		await(t, "the name to be resolved", func() error {
			got, err := p.ResolvedTo(t.Context(), clusterName("names.example.com", 80))
			if err == nil && !slices.Equal(got, []string{test.want}) {
				err = fmt.Errorf("an Envoy at %s resolves localhost to %v, not %s", test.own, got, test.want)
			}
			return err
		})
	}
}
