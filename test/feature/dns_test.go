package feature_test

import (
	"fmt"
	"testing"

	"github.com/isthmus-mesh/isthmus/admin"
)

func TestServiceOfOneNameIsResolvedByTheClient(t *testing.T) {
	t.Parallel()
	for _, resolution := range []string{"DNS", "DNS_ROUND_ROBIN"} {
		t.Run(resolution, func(t *testing.T) {
			t.Parallel()
			files, b := newRegistry(t, "files"), startBackends(t, "one", "two")
			named := func(b *backend) service {
				return service{Host: reviews, Resolution: resolution, Endpoints: []string{"{address: localhost, ports: {grpc: " + b.Port() + "}}"}}
			}
			files.Write("shop.yaml", named(b[0]))
			client := dial(t, start(t, files), reviews+":80", "shop")
			client.AwaitAnswers("one")
			files.Write("shop.yaml", named(b[1]))
			client.AwaitAnswers("two")
		})
	}
}

// TestServiceWithoutEndpointsIsResolvedByItsHost has no endpoints at all: the
// host itself is the name.
func TestServiceWithoutEndpointsIsResolvedByItsHost(t *testing.T) {
	t.Parallel()
	files, one := newRegistry(t, "files"), startBackend(t, "one")
	files.Write("shop.yaml", service{
		Host: "localhost", Resolution: "DNS", Ports: "[{number: 80, name: grpc, protocol: GRPC, targetPort: " + one.Port() + "}]",
	})
	dial(t, start(t, files), "localhost:80", "shop").AwaitAnswers("one")
}

func TestWhatGRPCCannotDoIsNotOfferedAndSaysSo(t *testing.T) {
	t.Parallel()
	files, one := newRegistry(t, "files"), startBackend(t, "one")
	files.Write("shop.yaml",
		service{Host: "two-names.example", Resolution: "DNS", Endpoints: []string{"{address: a.example}", "{address: b.example}"}},
		service{Host: "anywhere.example", Resolution: "NONE"},
		service{Host: "socket.example", Endpoints: []string{"{address: unix:///run/socket}"}},
		service{Host: "datagrams.example", Ports: "[{number: 80, name: udp, protocol: UDP}]"},
		service{Host: "partly.example", Ports: "[{number: 80, name: grpc, protocol: GRPC}, {number: 53, name: udp, protocol: UDP}]", Endpoints: endpoints(one)})
	isthmus := start(t, files)
	for host, reason := range map[string]string{
		"two-names.example": "gRPC resolves one name, and none or several of the endpoints are healthy",
		"anywhere.example":  "gRPC has no original destination to go to: resolution NONE",
		"socket.example":    "gRPC cannot reach endpoints on unix sockets over xDS",
		"datagrams.example": "gRPC does not speak UDP",
		"partly.example":    "port 53: gRPC does not speak UDP",
	} {
		isthmus.AwaitService(host, notOffered(admin.NotOffered{Output: "xds", Kind: "grpc", Reason: reason}))
	}
	dial(t, isthmus, "partly.example:80", "shop").AwaitAnswers("one")

	// What it can do after a change is offered from then on.
	client := dial(t, isthmus, "two-names.example:80", "shop")
	files.Write("shop.yaml", service{
		Host: "two-names.example", Resolution: "DNS", Endpoints: []string{"{address: localhost, ports: {grpc: " + one.Port() + "}}"},
	})
	client.AwaitAnswers("one")
	isthmus.AwaitService("two-names.example", notOffered())
}

// whatever demands nothing of a service.
func whatever(admin.Service) error { return nil }

func notOffered(want ...admin.NotOffered) func(admin.Service) error {
	return func(s admin.Service) error {
		if fmt.Sprint(s.NotOffered) != fmt.Sprint(want) {
			return fmt.Errorf("not offered: %+v", s.NotOffered)
		}
		return nil
	}
}
