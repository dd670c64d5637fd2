package xds_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// nodeAgent is how grpc-node names itself.
const nodeAgent = "gRPC Node Pure JS"

// routed reports whether a client has a listener, and whether that leads to a
// route configuration.
func routed(s *xdsclient.State, name string) (has, routed bool) {
	res, has := s.Get(lds, name)
	return has, has && strings.Contains(fmt.Sprint(res.Content), "outbound|80||")
}

func awaitListener(c *xdsclient.Client, name string) {
	c.Await("a listener "+name, func(s *xdsclient.State) bool {
		has, _ := routed(s, name)
		return has
	})
}

// grpc-node takes a listener that comes as it was before it was removed for no
// change. So it has an empty one in between, and from the beginning.
func TestAbsentListenersAreEmptyForGRPCNode(t *testing.T) {
	r := newProbed(t, "b.example")
	c := r.sotwWith(xdsclient.Config{Node: xdsclient.Node("node", "shop", nodeAgent)})
	other := r.sotwWith(xdsclient.Config{Node: xdsclient.Node("go", "shop", "gRPC Go")})
	const name = "a.example:80"
	for _, c := range []*xdsclient.Client{c, other} {
		c.Subscribe(lds, name, "b.example:80")
		awaitListener(c, "b.example:80")
	}
	is := func(there bool) {
		t.Helper()
		c.Await(fmt.Sprintf("a listener that leads somewhere: %t", there), func(s *xdsclient.State) bool {
			has, routed := routed(s, name)
			return has && routed == there
		})
		other.Await(fmt.Sprintf("a listener: %t", there), func(s *xdsclient.State) bool {
			has, routed := routed(s, name)
			return has == there && routed == there
		})
	}
	is(false)
	for range 2 {
		r.put(service("shop", "a.example"))
		is(true)
		r.remove(service("shop", "a.example"))
		is(false)
	}
	c.Reconnect(true)
	is(false)
}

// Before all sources are listed nobody knows that a listener is absent.
func TestListenersAreNotEmptyTooEarly(t *testing.T) {
	r := newRig(t, setup{incomplete: true})
	r.put(service("shop", probe))
	c := r.sotwWith(xdsclient.Config{Node: xdsclient.Node("node", "shop", nodeAgent)})
	c.Subscribe(lds, "a.example:80", probe+":80")
	awaitListener(c, probe+":80")
	c.Read(func(s *xdsclient.State) {
		if has, _ := routed(s, "a.example:80"); has {
			t.Error("the client was sent an empty listener before all sources were listed")
		}
	})
	r.complete = true
	r.apply()
	awaitListener(c, "a.example:80")
}

// A set is sent as one, so it does not grow with the number of names that a client
// makes up.
func TestOnlySoManyListenersAreEmpty(t *testing.T) {
	r := newProbed(t)
	c := r.sotwWith(xdsclient.Config{Node: xdsclient.Node("node", "shop", nodeAgent)})
	names := []string{probe + ":80"}
	for i := range 3000 {
		names = append(names, fmt.Sprintf("made-up-%d.example:80", i))
	}
	c.Subscribe(lds, names...)
	awaitListener(c, probe+":80")
	c.Read(func(s *xdsclient.State) {
		if n := len(s.Names(lds)); n > 1025 || n < 1000 {
			t.Errorf("the client has %d listeners", n)
		}
	})
}
