package laws_test

import (
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// wouldNACK reports whether a client NACKs a resource: some do so with some
// clusters and assignments, by their content.
func (n nature) wouldNACK(r xdsclient.Resource) bool {
	return n.Picky && (r.Type == xdsclient.CDS || r.Type == xdsclient.EDS) && r.Sum()%4 == 0
}

func (n nature) nackReason(r xdsclient.Resource) string {
	if n.wouldNACK(r) {
		return "it does not like it"
	}
	return ""
}

// excused are the names, by type, of which a client may hold something else than
// it should: what it NACKs, and what cannot be used without that. A full set is
// NACKed as a whole: of what is new in it nobody can tell what is at fault, nor try
// it by itself, so what refers to that waits until a set is ACKed.
func (c *client) excused(s *xdsclient.State, want view) map[string]bool {
	excused := map[string]bool{}
	if !c.Picky {
		return excused
	}
	for _, typeURL := range lawTypes { // clusters come first
		for name, encoded := range want[typeURL] {
			r, err := xdsclient.Decode(encoded.Body)
			if err != nil {
				panic(err)
			}
			if c.wouldNACK(r) {
				excused[typeURL+name] = true
				if typeURL == xdsclient.CDS { // the one before may have another kind of endpoints
					excused[xdsclient.EDS+name] = true
				}
			}
			if slices.ContainsFunc(r.ClusterNames(), func(cluster string) bool {
				return excused[xdsclient.CDS+cluster] || s.Suspect(xdsclient.CDS, cluster)
			}) {
				excused[typeURL+name] = true
			}
		}
	}
	return excused
}

// churn changes one service all the time, so that clients always have something
// to answer, while another goes. Nobody who answers may wait for the end of it.
func (p *play) churn(s step) {
	p.calm = false
	p.settle()
	r := p.registries[s.Registry]
	arrived := p.isServing() && !slices.ContainsFunc(p.registries[:], (*registry).isOnItsWay)
	p.edit(step{What: "remove", Registry: s.Registry, Which: s.Which, Report: "reported"})
	for i := range churns {
		p.edit(step{What: "put", Registry: s.Registry, Objects: s.Objects[i%len(s.Objects):][:1], Report: "reported"})
		time.Sleep(lateness / 2)
	}
	if p.script.Debounce != (xds.Debounces{}) || r.mode != up || r.late > 0 || !arrived || p.process == nil {
		return // or clients are still about to take something else
	}
	p.wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.followMarks() // meanwhile, the time of one may have come
	p.leave()
	spec, _ := s.Objects[0].Record.Spec.(model.Service)
	p.lookWhileChurning(nameOf(spec.Hosts.At(0)))
}

const churns = 100

// isServing reports whether clients are served.
func (p *play) isServing() bool {
	if p.process == nil {
		return false
	}
	select {
	case <-engineOf(p.process.App).Primed():
		return true
	default:
		return false
	}
}

// lookWhileChurning makes sure that everything but one host is as it should be.
func (p *play) lookWhileChurning(host string) {
	if !p.isServing() || !p.complete() {
		return
	}
	world := p.telling().world()
	for _, c := range p.clients {
		if c.away || c.holds || c.resumed || c.leader != nil || !c.IsConnected() || c.slowed() || c.Late > lateness {
			continue
		}
		want, wrong := p.expected(world, c), ""
		for _, names := range want {
			for name := range names {
				if strings.Contains(name, host) {
					delete(names, name)
				}
			}
		}
		c.Read(func(s *xdsclient.State) { wrong = c.difference(s, want, host) })
		if wrong != "" {
			p.Fatalf("while %s changes, %s: %s\n%s", host, c.name, wrong, c.Report())
		}
	}
}
