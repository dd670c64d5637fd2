package demo

import (
	"context"
	"fmt"
	"net"
	"strconv"
)

// second is a further registry beside the folder, with instances of a service that the
// folder has too. The service has one port, and each instance an address of its own.
type second struct {
	*registry
	center  *center
	service service
	waiting *fleet // not registered yet
}

const (
	secondName      = "center"
	secondInstances = 4
	firstInstance   = 3 // the number of the first instance; the folder has those before
	firstAddress    = 2 // of 127.0.0.0/8; the one before is for an Envoy
	portTries       = 20
)

// newSecond starts the registry, and the instances at one free port of the addresses from
// 127.0.0.2 on. The port of 127.0.0.1 is free. It fails on a machine without these addresses.
func newSecond(ctx context.Context, of service) (*second, error) {
	c, err := newCenter()
	if err != nil {
		return nil, err
	}
	for range portTries { // another process may have the port at one of the addresses
		s := &second{newRegistry(c), c, of, &fleet{}}
		if err = s.start(ctx); err == nil {
			return s, nil
		}
		s.waiting.close()
	}
	c.close()
	return nil, err
}

func (s *second) start(ctx context.Context) error {
	port := 0
	for n := range secondInstances {
		at := net.JoinHostPort("127.0.0."+strconv.Itoa(n+firstAddress), strconv.Itoa(port))
		b, err := s.waiting.start(ctx, fmt.Sprintf("%s-%d", s.service.name, n+firstInstance), at)
		if err != nil {
			return err
		}
		port = b.instance().port
	}
	var lc net.ListenConfig
	probe, err := lc.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return probe.Close()
}

// number is the port of the service.
func (s *second) number() int { return s.waiting.running[0].instance().port }

// sourceEntry is the source's entry in the configuration. Its hold is judged with few
// endpoints, because the demo has no more.
func (s *second) sourceEntry() string {
	return s.entry() + "  hold: {share: 0.5, min: 2}\n"
}

// close ends the registry and the instances that were never registered.
func (s *second) close() {
	s.waiting.close()
	s.registry.close()
}
