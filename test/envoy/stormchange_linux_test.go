package envoy_test

import (
	"errors"
	"fmt"
	"slices"
)

// change makes one change at random. Those after which a service is called otherwise are
// waited for, and rarer.
func (s *storm) change(o *stormService) {
	changes := []func(*stormService){s.grow, s.shrink, s.replace, s.reweigh, s.otherPort, s.renamePort, s.speak, s.guest, s.served}
	if s.random.IntN(6) == 0 {
		changes = []func(*stormService){s.move, s.leaveAndReturn, s.moveToOtherSource}
	}
	changes[s.random.IntN(len(changes))](o)
}

func (s *storm) grow(o *stormService) {
	if len(o.backends) < 5 {
		o.grow()
		o.publish("grow")
	}
}

func (s *storm) shrink(o *stormService) {
	if len(o.backends) > 1 {
		s.drop(o, 1, "shrink")
	}
}

func (s *storm) replace(o *stormService) {
	count := len(o.backends)
	for range count {
		o.grow()
	}
	s.drop(o, count, "replace")
}

// drop takes backends out of the folder. They stop once no Envoy has them.
func (s *storm) drop(o *stormService, count int, what string) {
	gone := slices.Clone(o.backends[:count])
	o.backends = slices.Delete(o.backends, 0, count)
	o.publish(what)
	for _, b := range gone {
		s.leavers.leave(s.Proxies, o.Host, b)
	}
}

func (s *storm) reweigh(o *stormService) {
	o.backends[s.random.IntN(len(o.backends))].endpoint.Weight = 1 + s.random.Uint32N(9)
	o.publish("weights")
}

// otherPort adds a port beside the one that sidecars are called at, or takes it away. An
// edge may lead to either.
func (s *storm) otherPort(o *stormService) {
	if o.more = nil; s.random.IntN(2) == 0 {
		number := []uint32{82, 83, 7100 + s.random.Uint32N(5)}[s.random.IntN(3)]
		o.more = []port{{Number: number, Name: "more", Protocol: []string{"HTTP", "TCP", "", "TLS", "GRPC"}[s.random.IntN(5)]}}
	}
	o.publish(fmt.Sprintf("more ports: %v", o.more))
}

func (s *storm) renamePort(o *stormService) {
	o.port.Name = fmt.Sprint("port-", s.random.IntN(100))
	o.publish("port " + o.port.Name)
}

// speak changes how endpoints are spoken to, which all of them understand.
func (s *storm) speak(o *stormService) {
	if o.Kind == byAuthority {
		o.port.Protocol = []string{"HTTP", "HTTP2", "GRPC"}[s.random.IntN(3)]
		o.publish("protocol " + o.port.Protocol)
	}
}

// guest has a service come, change or go that nobody calls, at ports that others have.
func (s *storm) guest(*stormService) {
	name := fmt.Sprint("guest-", s.random.IntN(6))
	if s.random.IntN(3) == 0 {
		s.Folder.write(s, name)
		return
	}
	g := service{Name: name, Spec: serviceSpec{
		Hosts: []string{fmt.Sprintf("%s-%d.example.com", name, s.random.IntN(3))}, Resolution: resolutions[s.random.IntN(len(resolutions))],
		Addresses: []string{addressV4(1, 1+s.random.IntN(9))},
	}}
	p := port{Number: []uint32{80, 81, 84, 443, 7200}[s.random.IntN(5)], Name: "main"}
	switch p.Number {
	case 443:
		p.Protocol = "TLS"
	case 7200:
		p.Protocol = "TCP"
	default:
		p.Protocol = []string{"HTTP", "HTTP2", "GRPC"}[s.random.IntN(3)]
	}
	g.Spec.Ports = []port{p}
	if g.Spec.Resolution == "STATIC" {
		g.Spec.Endpoints = []endpoint{{Address: "192.0.2.1"}}
	}
	s.Folder.write(s, name, g)
}

// served has other ports of the sidecars' workloads come, change and go.
func (s *storm) served(*stormService) {
	name := fmt.Sprint("served-", s.random.IntN(3))
	f := stormFamilies()[s.random.IntN(2) == 0]
	g := inboundOffer(name, f.redirected, 8081+s.random.Uint32N(3))
	if s.random.IntN(2) == 0 {
		g = inboundOffer(name, f.bound, 8086+s.random.Uint32N(2))
	}
	g.Spec.Ports[0].Protocol = []string{"HTTP", "TCP", "", "TLS"}[s.random.IntN(4)]
	g.Spec.Ports[0].Number = 6001
	s.Folder.write(s, name, g)
}

// move gives a service another host, and another port or address if it is not known by
// its handshake.
func (s *storm) move(o *stormService) {
	o.otherwise(func() {
		n := s.random.IntN(1000)
		o.Host = fmt.Sprintf("%s-%d.example.com", o.name, n)
		switch o.Kind {
		case byAuthority:
			o.Number = []uint32{80, 81, 84}[n%3]
		case byAddress, byContent:
			o.Number = 7300 + 30*o.index + uint32(n%30) // no other has it: without redirection it is all that tells them apart
			o.Address, o.AddressV6 = addressV4(2, n%250+1), addressV6(2, n%250+1)
		}
		o.more = nil
		o.publish("move to " + o.Host)
		s.awaitAnswers(o)
	})
}

// leaveAndReturn takes a service away for a while.
func (s *storm) leaveAndReturn(o *stormService) {
	o.otherwise(func() {
		o.note("leave")
		o.folder.write(s, o.name)
		for w := range s.waysTo(o) { // else it may be the answer of before that is seen below
			await(s, w.Name+": "+o.name+" to be gone", func() error {
				if w.called(s.Context(), anew(), o.name, o.offer) == nil {
					return errors.New("it still answers")
				}
				return nil
			})
		}
		o.publish("return")
		s.awaitAnswers(o)
	})
}

// moveToOtherSource has another source say the same first, and then it alone.
func (s *storm) moveToOtherSource(o *stormService) {
	former := o.folder
	o.folder = s.Others
	if former == s.Others {
		o.folder = s.Folder
	}
	o.publish("in both sources")
	for _, i := range s.Isthmuses {
		await(s, "both sources to have "+o.name, func() error { return i.claimedTwice(o.Host) })
	}
	o.note("in one source")
	former.write(s, o.name)
}

// claimedTwice checks that two sources have a service.
func (i *isthmus) claimedTwice(host string) error {
	var list []struct{ Records []struct{ Record string } }
	if err := i.ask("/api/v1/services/"+host, &list); err != nil {
		return err
	}
	records := map[string]bool{}
	for _, s := range list {
		for _, r := range s.Records {
			records[r.Record] = true
		}
	}
	if len(records) != 2 {
		return fmt.Errorf("it is %+v", list)
	}
	return nil
}
