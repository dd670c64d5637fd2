package laws_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// comeToRest fixes everything, and gives it the time that it takes until
// what registries list is applied. New clients come then, and a new process.
func (p *play) comeToRest() {
	p.at = len(p.script.Steps)
	if !p.vault.published {
		p.vault.publish()
	}
	if p.process == nil {
		p.start()
	}
	for _, r := range p.registries {
		r.become(func() { clear(r.faults) })
		r.turn(up, notice{})
	}
	for _, c := range p.clients {
		c.holds = false
		c.Release()
	}
	time.Sleep(10 * time.Minute)
	p.settle()
	for _, e := range p.wanted {
		p.mustMatch(p.mirrors[e.Name], p.registries[e.Registry])
	}
	p.lookAtOffers(true)
	if len(p.present) != len(p.wanted) {
		p.Fatalf("%d sources stay, but %d are wanted", len(p.present), len(p.wanted))
	}
	for _, c := range p.clients {
		if c.away {
			p.reconnect(c, true)
		}
	}
	p.calm = false
	p.rest()
	for _, delta := range []bool{false, true} {
		n := p.script.Clients[0]
		n.Delta = delta
		p.connect(n)
	}
	p.rest()
	if p.dir != "" {
		p.beginAgain()
	}
	for _, c := range p.clients {
		c.Close()
	}
}

// beginAgain has clients come back to a process that knows nothing but what is
// on disk. They are sent nothing.
func (p *play) beginAgain() {
	time.Sleep(time.Second)
	for _, r := range p.registries {
		r.turn(stuck)
	}
	p.stop(p.script.Steps[0].Keep)
	before := map[*client]map[string]int{}
	for _, c := range p.clients {
		before[c] = c.sent()
	}
	p.start()
	p.calm = true
	p.rest()
	for _, c := range p.clients {
		if after := c.sent(); c.Delta && !c.Picky && !maps.Equal(before[c], after) {
			p.Fatalf("%s is sent something after a restart: %v before, %v now", c.name, before[c], after)
		}
	}
}

// sent counts what a client was sent and what was taken from it.
func (c *client) sent() map[string]int {
	counts := map[string]int{}
	c.Read(func(s *xdsclient.State) {
		for typeURL, name := range holdings(s) {
			counts[typeURL+name] = s.Received(typeURL, name) + s.Removals(typeURL, name)
		}
	})
	return counts
}

// mustMatch makes sure that a source is nothing but what its registry says.
func (p *play) mustMatch(m *mirror, r *registry) {
	want := r.mirror(m.hold)
	if !m.primed || len(m.held) > 0 || !slices.Equal(want.lines(), m.lines()) {
		p.Fatalf("in the end a source holds\n%s\nbut its registry says\n%s", strings.Join(m.lines(), "\n"), strings.Join(want.lines(), "\n"))
	}
}

// mirror is that of a source which has read nothing but what a registry says now.
func (r *registry) mirror(hold hold.Config) *mirror {
	m := newMirror(hold)
	_, plain := r.listing()
	m.take(plain)
	return m
}

// lines is what must be stored, for the eye.
func (m *mirror) lines() []string {
	var lines []string
	for ref, r := range m.records() {
		_, held := m.held[ref]
		lines = append(lines, line(ref, r, held))
	}
	slices.Sort(lines)
	return lines
}

func line(ref model.Ref, r model.Record, held bool) string {
	return fmt.Sprintf("%s %s via %q: %+v, held %t", ref.Kind, ref.Key, r.Path, r.Spec, held)
}
