package laws_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/app"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// rest waits until nothing more happens, and looks at everything.
func (p *play) rest() {
	p.settle()
	if p.process == nil {
		return
	}
	p.revive()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lookAtStore()
	p.lookAtAsked()
	p.lookAtOffers(false)
	if open := p.lookAtGate(); !open {
		p.calm = false
		return
	}
	p.lookAtSecrets()
	p.lookAtUnited()
	p.lookAtMarks()
	world, complete := p.telling().world(), p.complete()
	for _, c := range p.clients {
		if c.away || c.holds {
			c.last = nil
			continue
		}
		c.resumed = c.resumed && !complete
		want, wrong := p.expected(world, c), ""
		c.AwaitNone(func(s *xdsclient.State) string {
			wrong = c.difference(s, want)
			if names := c.flapped(s, want); p.calm && len(names) > 0 {
				wrong += fmt.Sprintf("%v went and came back", names)
			}
			if c.resumed {
				wrong += c.bereft(s)
			} else if cold := s.Unwarmed(); len(cold) > 0 && !c.Picky {
				wrong += fmt.Sprintf("%v came without their assignments", cold)
			}
			c.note(s, want)
			return ""
		})
		if wrong != "" {
			p.Fatalf("%s: %s\n%s", c.name, wrong, c.Report())
		}
	}
	p.calm = !slices.ContainsFunc(p.registries[:], (*registry).isOnItsWay)
}

// bereft names what a client has lost by coming back, although it may still be there. One of
// the state of the world may lose it: it is answered once optional sources were waited for.
func (c *client) bereft(s *xdsclient.State) string {
	if !c.Delta {
		c.held = nil
		return ""
	}
	for typeURL, name := range holdings(s) {
		delete(c.held, typeURL+name)
	}
	lost := slices.Sorted(maps.Keys(c.held))
	if c.held = nil; len(lost) > 0 {
		return fmt.Sprintf("%v were taken from it before everything was listed", lost)
	}
	return ""
}

// revive has clients come back whose stream the server has ended.
func (p *play) revive() {
	for range 3 {
		again := false
		for _, c := range p.clients {
			if !c.away && !c.IsConnected() {
				p.reconnect(c, true)
				again = true
			}
		}
		if !again {
			return
		}
		p.settle()
	}
}

// complete reports whether every source that is wanted has been listed.
func (p *play) complete() bool {
	return !slices.ContainsFunc(p.wanted, func(e entry) bool { return !p.primed(e.Name) })
}

// lookAtGate makes sure that something is served when, and only when, it may be.
func (p *play) lookAtGate() (open bool) {
	waited := time.Since(p.process.since) >= app.OptionalWait
	may := !slices.ContainsFunc(p.wanted, func(e entry) bool { return !p.primed(e.Name) && !(e.Optional && waited) })
	select {
	case <-engineOf(p.process.App).Primed():
		open = true
	default:
	}
	if may && !open && p.vault.published {
		p.Fatalf("nothing is served although everything that is required has been listed")
	}
	if open && !p.vault.published {
		p.Fatalf("something is served although one producer has nothing yet")
	}
	if open && !may && !p.process.served && !p.process.loose {
		p.Fatalf("something is served although not all of %v is listed", p.wanted)
	}
	p.process.served, p.process.loose = open, p.process.loose && !p.vault.published
	return open
}

// lookAtStore makes sure that stored is what the mirrors say.
func (p *play) lookAtStore() {
	var want, got []string
	for _, m := range p.present {
		for _, l := range p.mirrors[m.Name].lines() {
			want = append(want, m.Name+": "+l)
		}
	}
	var holds model.Holds
	for r := range p.process.store.List(model.Filter{Kind: model.KindHold}) {
		holds.Add(r)
	}
	for r := range p.process.store.List(model.Filter{}) {
		_, held := holds.Of(r.Ref, r.Owner)
		switch {
		case r.Kind.Reserved(): // what is held is shown with the records
		default:
			got = append(got, r.Source+": "+line(plain(r.Ref), r, held))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		p.Fatalf("stored are\n%s\nbut it should be\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
