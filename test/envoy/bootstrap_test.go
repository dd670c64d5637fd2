package envoy_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
)

// TestEnvoyTakesEveryPrintedBootstrap has Envoy itself judge what is printed, for
// each of the flags.
func TestEnvoyTakesEveryPrintedBootstrap(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	web := newIdentity(t, filepath.Join(m.Dir, "web"), proxyIdentity)
	trusted := authority.New(t, "authority")
	web.issue(trusted)
	web.replace(trusted)
	secured := []string{"--ca", web.file("ca.crt"), "--cert", web.file("tls.crt"), "--key", web.file("tls.key")}
	for name, flags := range map[string][]string{
		"least":    {"--node", "web-1", "--address", "127.0.0.1:15010"},
		"sidecar":  {"--node", "sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local", "--interception", "TPROXY", "--address", "[::1]:15010"},
		"router":   {"--node", "edge-1", "--type", "router", "--address", "unix:///tmp/xds.sock", "--sotw"},
		"workload": {"--node", "web-1", "--ip", "10.0.0.7,2001:db8::7", "--labels", "app=web", "--locality", "eu/west/a", "--cluster", "east", "--address", "127.0.0.1:15010"},
		"replicas": {"--node", "web-1", "--address", "127.0.0.1:15010", "--address", "127.0.0.2:15010", "--keepalive", "30s"},
		"name":     append([]string{"--node", "web-1", "--address", "localhost:15010"}, secured...),
		"address":  append([]string{"--node", "web-1", "--address", "127.0.0.1:15010"}, secured...),
		"identity": append([]string{"--node", "web-1", "--address", "127.0.0.1:15010", "--server-name", isthmusIdentity}, secured...),
		"token":    append([]string{"--node", "web-1", "--address", "127.0.0.1:15010", "--address", "127.0.0.2:15010", "--server-name", "localhost", "--token-file", "/token"}, secured...),
	} {
		for _, form := range []string{"yaml", "json"} {
			text, err := proxy.Print(t.Context(), programs.isthmus, append([]string{"bootstrap", "envoy", "-o", form}, flags...)...)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(m.Dir, name+"."+form)
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.CommandContext(t.Context(), programs.envoy, "--mode", "validate", "-c", file, "-l", "error").CombinedOutput(); err != nil {
				t.Errorf("%s as %s: %v: %s", name, form, err, out)
			}
		}
	}
}

// TestPrintedBootstrapConnectsByTLS has Isthmus serve those who prove who they are,
// and Envoy take it for itself alone: by its address, by its name, and by its identity.
func TestPrintedBootstrapConnectsByTLS(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		m := newMesh(t)
		trusted := authority.New(t, "authority")
		control := newIdentity(t, filepath.Join(m.Dir, "control"), isthmusIdentity)
		web := newIdentity(t, filepath.Join(m.Dir, "web"), proxyIdentity)
		for _, side := range []*identity{control, web} {
			side.issue(trusted)
			side.replace(trusted)
		}
		m.Folder.write(t, "one", static("one.example.com", endpoint{Address: "192.0.2.1"}))
		i := m.Serve(fmt.Sprintf("certFile: %q, keyFile: %q, clientCAFile: %q", control.file("tls.crt"), control.file("tls.key"), control.file("ca.crt")))
		for name, flags := range map[string][]string{
			"address":  {"--address", i.XDS.String()},
			"name":     {"--address", net.JoinHostPort("localhost", strconv.Itoa(int(i.XDS.Port())))},
			"identity": {"--address", i.XDS.String(), "--server-name", isthmusIdentity},
		} {
			flags = append(flags, "--ca", web.file("ca.crt"), "--cert", web.file("tls.crt"), "--key", web.file("tls.key"))
			p, err := proxy.Start(t.Context(), proxy.Config{
				Program: programs.envoy, Isthmus: programs.isthmus, Dir: m.Dir, Workload: name, Namespace: shop, Delta: delta, Flags: flags,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Stop)
			m.Proxies = append(m.Proxies, p)
		}
		m.AwaitActive("the cluster")
		clients, err := i.clients()
		if err != nil || len(clients) != len(m.Proxies) {
			t.Errorf("%d clients: %v", len(clients), err)
		}
		for _, c := range clients {
			if !c.Proven || c.Identity != proxyIdentity {
				t.Errorf("%s is %q, proven: %t", c.ID, c.Identity, c.Proven)
			}
		}
	})
}

// TestEnvoyWaitsForIsthmusAtItsStart has an Envoy start before Isthmus, and take its
// configuration once there is one.
func TestEnvoyWaitsForIsthmusAtItsStart(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	m.Folder.write(t, "one", static("one.example.com", endpoint{Address: "192.0.2.1"}))
	i := newIsthmus(t, "late", m, "")
	started := make(chan error, 1)
	var p *proxy.Proxy
	go func() {
		var err error
		defer func() { started <- err }()
		p, err = proxy.Start(t.Context(), proxy.Config{
			Program: programs.envoy, Isthmus: programs.isthmus, Dir: m.Dir, Workload: "early", Namespace: shop, Delta: true,
			Flags: []string{"--address", i.XDS.String()},
		})
	}()
	await(t, "Envoy to run", func() error {
		_, err := os.Stat(filepath.Join(m.Dir, "early.admin"))
		return err
	})
	i.Serve()
	m.Isthmuses = append(m.Isthmuses, i)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	m.Proxies = append(m.Proxies, p)
	m.AwaitActive("the cluster")
}
