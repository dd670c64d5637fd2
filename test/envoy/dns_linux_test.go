package envoy_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/netns"
	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// TestSidecarTakesConnectionsByName redirects lookups and connections to a sidecar. A program
// that asks its nameserver for a name and connects to what it is told reaches the service,
// be it by an address of the service or by one that goes nowhere.
func TestSidecarTakesConnectionsByName(t *testing.T) {
	t.Parallel()
	if separately(t) {
		return
	}
	// A port of TCP does not say whom it is for, so the name of raw has an address of its own.
	const vip, nowhere, given, asked = "127.0.9.9", "240.240.0.1", "241.199.65.82", "127.0.0.53:53"
	setUp := []error{
		netns.AddAddress(netip.MustParseAddr(nowhere)),
		netns.AddAddress(netip.MustParseAddr(given)),
		netns.RedirectDatagrams(53, 15053),
		netns.Redirect(netip.MustParseAddr(vip), 15001, netip.MustParseAddr(source)),
		netns.Redirect(netip.MustParseAddr(nowhere), 15001, netip.MustParseAddr(source)),
		netns.Redirect(netip.MustParseAddr(given), 15001, netip.MustParseAddr(source)),
	}
	for _, err := range setUp {
		if err != nil {
			t.Fatal(err)
		}
	}
	m := newMesh(t)
	web, api := startBackend(t, "web", "web"), startBackend(t, "api", "api")
	others := startNameserver(t, map[string][4]byte{"outside.example.org.": {192, 0, 2, 77}})
	serveGreetings(t, "127.0.0.1", 9191)
	m.Envoy = fmt.Sprintf("dns: {upstream: [%q]}", others.Address)
	withAddress := httpOn("web.example.com", 80, web)
	withAddress.Spec.Addresses = []string{vip}
	raw := service{Spec: serviceSpec{
		Hosts: []string{"raw.example.com"}, Resolution: "STATIC", Ports: []port{{Number: 9000, Name: "main", Protocol: "TCP"}},
		Endpoints: []endpoint{{Address: "127.0.0.1", Ports: map[string]uint32{"main": 9191}}},
	}}
	m.Folder.write(t, "services", withAddress, httpOn("api.shop.svc.cluster.local", 80, api), raw)
	m.Serve("")
	m.connectWith(proxy.Config{Delta: true, Redirected: true})
	m.AwaitActive("the services")

	resolver := resolverAt(asked)
	for name, want := range map[string]string{
		"web.example.com": vip, "api": nowhere, "api.shop": nowhere, "raw.example.com": given, "outside.example.org": "192.0.2.77",
	} {
		await(t, name, func() error { return resolves(t.Context(), resolver, name, want) })
	}
	if err := resolves(t.Context(), resolver, "nobody.example.com"); err != nil {
		t.Error(err)
	}
	for host, want := range map[string]string{"web.example.com": "web", "api.shop": "api", "api.shop.svc.cluster.local": "api"} {
		await(t, host+" to answer", func() error { return called(t.Context(), resolver, host, 80, want) })
	}
	await(t, "the server that speaks first to be reached", func() error { return greetedBy(t.Context(), resolver, "raw.example.com.:9000") })
	m.MustBeSettled()
}

// greetedBy checks that a server whose name is resolved says something.
func greetedBy(ctx context.Context, r *net.Resolver, address string) error {
	dialer := net.Dialer{Resolver: r, Timeout: until.Patience}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer connection.Close()
	_, err = bufio.NewReader(connection).ReadString('\n')
	return err
}
