package push

import (
	"errors"
	"fmt"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// admit connects a client, and closes it again if there is no room for its view.
func admit(e *Engine, info Info, c world.Client) (*Subscriber, error) {
	s := e.Connect(info, c)
	if err := s.Admit(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Clients of one address that prove nothing make up as many views as are allowed, whatever
// they vary. Those that say what another says share its view, and others are not concerned.
func TestViewsOfUnprovenClientsAreBounded(t *testing.T) {
	vary := map[string]func(*world.Client, string){
		"namespace": func(c *world.Client, by string) { c.Namespace = by },
		"locality":  func(c *world.Client, by string) { c.Locality = model.Locality{Zone: by} },
		"network":   func(c *world.Client, by string) { c.Network = by },
		"node":      func(c *world.Client, by string) { c.Node = by },
		"ports":     func(c *world.Client, by string) { c.Proxy.Outbound = world.PortsOf([]uint16{uint16(by[0])}) },
	}
	for name, set := range vary {
		t.Run(name, func(t *testing.T) {
			e := New(Config{Holdings: Holdings{Views: 3}})
			client := func(by string) world.Client {
				c := world.Client{Kind: "envoy"}
				set(&c, by)
				return c
			}
			peer := Info{ID: "a", Budget: "192.0.2.1"}
			var all []*Subscriber
			for i := range 6 {
				s, err := admit(e, peer, client(fmt.Sprint(i%3)))
				if err != nil {
					t.Fatalf("client %d: %v", i, err)
				}
				all = append(all, s)
			}
			if _, err := admit(e, peer, client("more")); !errors.Is(err, ErrViews) {
				t.Errorf("one view too many: %v", err)
			}
			for what, info := range map[string]Info{
				"another address": {Budget: "192.0.2.2"}, "a proven identity": {Budget: "192.0.2.1", Proven: true}, "this machine": {},
			} {
				s, err := admit(e, info, client("more"))
				if err != nil {
					t.Errorf("%s: %v", what, err)
					continue
				}
				s.Close()
			}
			all[0].Close()
			if _, err := admit(e, peer, client("more")); !errors.Is(err, ErrViews) {
				t.Errorf("a view that another still has was given up: %v", err)
			}
			all[3].Close()
			s, err := admit(e, peer, client("more"))
			if err != nil {
				t.Errorf("there is no room again: %v", err)
			}
			for _, s := range append(all, s) {
				s.Close()
			}
			if h := e.holdings; h.total != 0 || len(h.views)+len(h.says) != 0 {
				t.Errorf("%d bytes are left, %v and %v", h.total, h.views, h.says)
			}
		})
	}
}

// Views take of the room that all clients share, each once.
func TestViewsCountInTheMemoryOfAllClients(t *testing.T) {
	e := New(Config{Holdings: Holdings{Total: 2 * viewCost}})
	var all []*Subscriber
	for i := range 4 {
		s, err := admit(e, Info{}, world.Client{Kind: "envoy", Namespace: fmt.Sprint(i % 2), Node: fmt.Sprint(i)})
		if err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
		all = append(all, s)
	}
	if _, err := admit(e, Info{}, world.Client{Kind: "envoy", Namespace: "more"}); !errors.Is(err, ErrViews) {
		t.Errorf("one view too many: %v", err)
	}
	for _, s := range all {
		s.Close()
	}
	if e.holdings.total != 0 {
		t.Errorf("%d bytes are left", e.holdings.total)
	}
}
