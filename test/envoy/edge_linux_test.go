package envoy_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// TestEdgeTakesAnyServices has Envoys at the edge take services of every form, while they
// come, go and change. Some of their hosts are wildcards.
func TestEdgeTakesAnyServices(t *testing.T) {
	t.Parallel()
	if separately(t) {
		return
	}
	random := rand.New(rand.NewPCG(*seed, 16))
	m := newMesh(t)
	m.Envoy = `edge: {ports: [{number: 80, hosts: ["*"], localAddresses: allow}, {number: 8081, hosts: ["*"], localAddresses: allow}, {number: 443, protocol: TLS, hosts: ["*"], localAddresses: allow}, {number: 9000, protocol: TCP, hosts: [s-0-0.localhost], localAddresses: allow}]}, defaults: {accessLog: {path: /dev/null, format: json}}`
	write := func(n int) {
		list := drawServices(random, n)
		for at, o := range list {
			s := o.(service)
			if s.Spec.Resolution == "STATIC" && random.IntN(3) == 0 {
				s.Spec.Hosts = []string{fmt.Sprintf("*.s-%d-%d.localhost", n, at)}
			}
			list[at] = s
		}
		m.Folder.write(t, fmt.Sprintf("some-%d", n), list...)
	}
	for n := range 20 {
		write(n)
	}
	m.Serve("")
	for _, delta := range []bool{true, false} {
		m.connectWith(proxy.Config{Delta: delta})
	}
	m.AwaitActive("the services")
	for range 8 {
		for range 6 {
			write(random.IntN(20))
		}
		m.AwaitActive("the services as they are now")
	}
}
