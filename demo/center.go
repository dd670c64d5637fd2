package demo

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/isthmus-mesh/isthmus/demo/servicecenter"
)

const (
	appID       = "shop"
	environment = "production"
)

// center is a registry with which instances register themselves: a stand-in for ServiceComb
// Service Center, with the original's delays.
type center struct {
	server *servicecenter.Server
	ids    map[string]string // of services, by name
	known  map[string][]instance
}

var _ medium = (*center)(nil)

func newCenter() (*center, error) {
	server := servicecenter.New(servicecenter.Config{KeepAlive: true})
	if err := server.Listen(); err != nil {
		return nil, fmt.Errorf("starting the registry: %w", err)
	}
	return &center{server, map[string]string{}, map[string][]instance{}}, nil
}

// place gives all instances of a service one port, each at an address of its
// own: in this registry a service has the ports of its instances, and a client
// calls one of them.
func (*center) place(n int, announced []instance) string {
	port := 0
	if len(announced) > 0 {
		port = announced[0].port
	}
	return net.JoinHostPort("127.0.0."+strconv.Itoa(n), strconv.Itoa(port))
}

func (*center) port(_ service, announced []instance) int { return announced[0].port }

// write registers who is not registered as they are, and unregisters who is
// gone.
func (c *center) write(s service, all []instance) (time.Time, error) {
	id, ok := c.ids[s.name]
	if !ok {
		id = c.server.Register(servicecenter.Service{App: appID, Environment: environment, Name: s.name, Version: "1.0.0"})
		c.ids[s.name] = id
	}
	at, before := time.Now(), map[instance]bool{}
	gone := map[string]bool{}
	for _, i := range c.known[s.name] {
		before[i], gone[i.name] = true, true
	}
	for _, i := range all {
		delete(gone, i.name)
		if !before[i] {
			c.server.RegisterInstance(id, registration(i))
		}
	}
	for name := range gone {
		c.server.UnregisterInstance(id, name)
	}
	c.known[s.name] = append([]instance(nil), all...)
	return at, nil
}

func registration(i instance) servicecenter.Instance {
	endpoint := "grpc://" + net.JoinHostPort(i.address, strconv.Itoa(i.port))
	return servicecenter.Instance{ID: i.name, HostName: i.name, Endpoints: []string{endpoint}}
}

func (c *center) changed(before time.Time) time.Time { return c.server.Written(before) }

func (*center) where(s service, _ instance, _ []instance) string {
	return "default/" + environment + "/" + appID + "/" + s.name
}

// centerEntry polls more often than usual, because a viewer is waiting.
const centerEntry = `- name: center
  localAddresses: allow # the instances are on this machine
  servicecenter:
    addresses: [%s]
    host: "{{.Service}}.%s.example"
    namespace: %[2]s
    poll: 200ms
`

func (c *center) entry() string { return fmt.Sprintf(centerEntry, c.server.URL(), namespace) }

func (c *center) words() words {
	return words{
		registry: "a stand-in for Service Center",
		at:       c.server.URL(),
		invitation: "register instances or remove them, for example with\n" +
			"  curl -X DELETE " + c.server.URL() + "/v4/default/registry/microservices/" + c.ids["cart"] + "/instances/cart-1\n" +
			"and watch what the client sees.",
		read:       "has read the registry",
		add:        "%s starts, and registers with the registry as an instance of %s.",
		remove:     "%s stops at once, then it is removed from the instances of %s.",
		spoilTitle: "break a registration",
		spoil:      "%s starts, but registers with %s with a port that cannot be.",
		rejection:  "it is rejected, with its service",
		fixTitle:   "fix the registration",
		fix:        "%s registers with %s again, with its port.",
	}
}

func (c *center) close() { c.server.Close() }
