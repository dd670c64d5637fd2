package servicecenter_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/servicecenter"
	"github.com/isthmus-mesh/isthmus/source/sourcetest"
	standin "github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

// What every listed source has to pass, with and without a watch.
func TestListed(t *testing.T) {
	t.Parallel()
	for name, watch := range map[string]bool{"polled": false, "watched": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sourcetest.RunListed(t, sourcetest.Listed{
				Open: func(testing.TB) sourcetest.Registry { return newCenter(watch) }, Faults: centerFaults,
				Lag: 4 * poll, Histories: 30,
			})
		})
	}
}

var centerFaults = []string{
	"lists fail", "lists are garbage", "lists break off", "lists have no body", "lists are never answered", "everything fails",
}

// center is a Service Center that the suite steers.
type center struct {
	*standin.Server
	net   *network
	watch bool
	mu    sync.Mutex        // guards the rest
	ids   map[string]string // of services, by host
	holds sourcetest.Services
}

func newCenter(watch bool) *center {
	c := &center{Server: standin.New(prompt), net: &network{listeners: map[string]*listener{}}, watch: watch, ids: map[string]string{}}
	c.Serve(c.net.listen())
	return c
}

// Open implements [sourcetest.Registry].
func (c *center) Open(env source.Env) source.Source {
	config := servicecenter.WithDefaults(servicecenter.Config{
		Addresses: []string{c.URL()}, Poll: poll, Timeout: time.Second, Watch: c.watch,
	})
	src := servicecenter.New(config, servicecenter.Options{Instance: env.Instance, Name: env.Name, Stored: env.Stored, Log: env.Log})
	src.DialWith(c.net.dial)
	return src
}

// Set implements [sourcetest.Registry].
func (c *center) Set(services sourcetest.Services) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.holds
	c.holds = services
	c.spoil()
	for host := range before {
		if _, stays := services[host]; !stays {
			c.Unregister(c.ids[host])
			delete(c.ids, host)
		}
	}
	for host, service := range services.Sorted() {
		if c.ids[host] == "" {
			c.ids[host] = c.Register(standin.Service{App: "shop", Name: host, Version: "1.0.0"})
		}
		c.instances(c.ids[host], before[host].Endpoints, service.Endpoints)
	}
}

// instances has a service have those instances instead of others.
func (c *center) instances(service string, before, after []netip.AddrPort) {
	id := func(e netip.AddrPort) string { return strings.NewReplacer(".", "-", ":", "-").Replace(e.String()) }
	for _, e := range after {
		if !slices.Contains(before, e) {
			c.RegisterInstance(service, standin.Instance{ID: id(e), HostName: "h", Endpoints: []string{fmt.Sprintf("rest://%s", e)}})
		}
	}
	for _, e := range before {
		if !slices.Contains(after, e) {
			c.UnregisterInstance(service, id(e))
		}
	}
}

// spoil has the bad services be those that cannot be found.
func (c *center) spoil() {
	holds := c.holds
	c.FailKeys(standin.Internal, func(k standin.Key) bool { return holds[k.Name].Bad })
}

// Fail implements [sourcetest.Registry].
func (c *center) Fail(way int) {
	route, fault := standin.ListServices, []standin.Fault{
		standin.FailWith(standin.Internal), standin.Garbage(), standin.CutOff(30), standin.Empty(), standin.Hang(), standin.FailWith(standin.Internal),
	}[way]
	if way == 5 {
		route = standin.Any
	}
	c.Inject(route, fault, 0)
}

// Restore implements [sourcetest.Registry].
func (c *center) Restore() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Repair()
	c.spoil()
}

// Disconnect implements [sourcetest.Disconnecter].
func (c *center) Disconnect() { c.DropWatchers() }
