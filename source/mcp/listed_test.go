package mcp_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"testing"
	"time"

	mcpapi "istio.io/api/mcp/v1alpha1"

	"github.com/isthmus-mesh/isthmus/source"
	sourcemcp "github.com/isthmus-mesh/isthmus/source/mcp"
	"github.com/isthmus-mesh/isthmus/source/sourcetest"
)

// What every listed source has to pass, with full states and with increments.
func TestListed(t *testing.T) {
	t.Parallel()
	for name, incremental := range map[string]bool{"full states": false, "increments": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sourcetest.RunListed(t, sourcetest.Listed{
				Open: func(testing.TB) sourcetest.Registry { return &listed{peer: newPeer(), incremental: incremental} },
				Faults: []string{
					"streams end with an error", "there is no connection", "it never answers",
				},
				Lag: 4 * time.Second, Reports: incremental, Histories: 30,
			})
		})
	}
}

// listed is a peer that the suite steers. Services are in one collection or the other.
type listed struct {
	*peer
	incremental bool
	version     int
	before      sourcetest.Services
}

// Open implements [sourcetest.Registry].
func (l *listed) Open(env source.Env) source.Source {
	c := sourcemcp.Config{Address: "127.0.0.1:9901", Incremental: l.incremental}
	c.DialWith(l.dial)
	c.Hurry(time.Second, time.Second)
	return c.Open(env)
}

// Set implements [sourcetest.Registry].
func (l *listed) Set(services sourcetest.Services) {
	l.set(func() {
		for i, host := range []string{"a.example", "b.example", "c.example", "d.example"} {
			collection := []string{entries, synthetic}[i%2]
			if l.collections[collection] == nil {
				l.collections[collection] = map[string]*mcpapi.Resource{}
			}
			service, has := services[host]
			if !has {
				delete(l.collections[collection], "shop/"+host)
				continue
			}
			if before, had := l.before[host]; had && before.Bad == service.Bad && slices.Equal(before.Endpoints, service.Endpoints) {
				continue
			}
			l.version++
			l.collections[collection]["shop/"+host] = entryOf(host, strconv.Itoa(l.version), service)
		}
		l.before = services
	})
}

func entryOf(host, version string, s sourcetest.Service) *mcpapi.Resource {
	addresses := make([]string, len(s.Endpoints))
	for i, e := range s.Endpoints {
		addresses[i] = e.Addr().String()
	}
	resource := entryFor(host, version, s.Endpoints, addresses)
	if s.Bad {
		resource.Body = entrySpec("", "", "no host", 80, nil).GetBody()
	}
	return resource
}

// Fail implements [sourcetest.Registry].
func (l *listed) Fail(way int) {
	l.set(func() { l.fault, l.forgetful = way, true })
	l.disconnect()
}

// Restore implements [sourcetest.Registry].
func (l *listed) Restore() {
	l.set(func() { l.fault = -1 })
	l.disconnect() // a stream that is not answered is not taken up again
}

// Disconnect implements [sourcetest.Disconnecter].
func (l *listed) Disconnect() {
	l.set(func() { l.forgetful = false })
	l.disconnect()
}

// Close implements [sourcetest.Registry].
func (l *listed) Close() { l.server.Stop() }

func entryFor(host, version string, at []netip.AddrPort, addresses []string) *mcpapi.Resource {
	port := uint16(8080)
	if len(at) > 0 {
		port = at[0].Port()
	}
	return entrySpec(fmt.Sprintf("shop/%s", host), version, host, uint32(port), addresses)
}
