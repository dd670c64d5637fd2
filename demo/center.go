package demo

import (
	"fmt"
	"net"
	"strconv"
	"time"
)

const (
	appID       = "shop"
	environment = "production"
)

// center is a registry with which instances register themselves.
type center struct{ *serviceCenter }

var _ medium = (*center)(nil)

func newCenter() (*center, error) {
	s, err := startServiceCenter()
	if err != nil {
		return nil, fmt.Errorf("starting the registry: %w", err)
	}
	return &center{s}, nil
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

// write registers all instances of a service at once, and unregisters the others.
func (c *center) write(s service, all []instance) (time.Time, error) {
	at := time.Now()
	registered := make([]registration, len(all))
	for n, i := range all {
		endpoint := "grpc://" + net.JoinHostPort(i.address, strconv.Itoa(i.port))
		registered[n] = registration{ID: i.name, HostName: i.name, Endpoints: []string{endpoint}}
	}
	c.replace(appID, s.name, registered)
	return at, nil
}

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

func (c *center) entry() string { return fmt.Sprintf(centerEntry, c.url, namespace) }

func (c *center) words() words {
	return words{
		registry: "a stand-in for Service Center",
		at:       c.url,
		invitation: "register instances or remove them, for example with\n" +
			"  curl -X DELETE " + c.url + "/v4/default/registry/microservices/cart/instances/cart-1\n" +
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
