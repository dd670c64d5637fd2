package laws_test

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/app"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// drawDebounces draws how long changes wait, by type and mode. In most
// histories nothing waits.
func drawDebounces(t *rapid.T) (d xds.Debounces) {
	if rapid.IntRange(0, 3).Draw(t, "debounced") > 0 {
		return d
	}
	for _, by := range []*xds.ByMode{&d.Clusters, &d.Endpoints, &d.Listeners, &d.Routes} {
		by.StateOfTheWorld, by.Delta = drawDebounce(t), drawDebounce(t)
	}
	return d
}

func drawDebounce(t *rapid.T) (d world.Debounce) {
	if d.Quiet = rapid.SampledFrom([]time.Duration{0, 20 * time.Millisecond, longestQuiet}).Draw(t, "quiet"); d.Quiet > 0 {
		d.Max, d.Events = rapid.SampledFrom([]time.Duration{0, 300 * time.Millisecond}).Draw(t, "max"), rapid.SampledFrom([]int{0, 2}).Draw(t, "events")
	}
	return d
}

const longestQuiet = 200 * time.Millisecond

// lateness is how late some clients answer.
const lateness = 3 * time.Millisecond

// pace is how long it takes until everybody has what there is.
func (p *play) pace() time.Duration {
	pace := time.Millisecond
	if p.script.Debounce != (xds.Debounces{}) {
		pace += 2 * longestQuiet
	}
	rounds := 50
	if p.script.Turn > 0 {
		rounds += 100 / p.script.Turn
	}
	latest := time.Duration(0)
	for _, c := range p.clients {
		latest = max(latest, c.Late)
	}
	pace += time.Duration(rounds) * latest
	if slices.ContainsFunc(p.clients, (*client).slowed) {
		pace += 2 * nackEvery
	}
	return pace
}

// Past so many NACKs on a stream each waits for its turn, and what comes behind it
// waits with it: see the limits of the output. That costs a client that NACKs
// all the time the newest of what it NACKs, and nobody else anything.
const (
	nackBurst = 100
	nackEvery = 100 * time.Millisecond
)

// slowed reports whether a client may have to wait for its NACKs to be taken in.
func (c *client) slowed() (slowed bool) {
	c.Read(func(s *xdsclient.State) { slowed = nacks(s)-c.nacks >= nackBurst })
	return slowed
}

func nacks(s *xdsclient.State) (n int) {
	for _, typeURL := range lawTypes {
		n += s.NACKs(typeURL)
	}
	return n
}

// nacked is when a client last NACKed something that had to wait.
func (p *play) nacked() time.Time {
	n := 0
	for _, c := range p.clients {
		if c.slowed() {
			c.Read(func(s *xdsclient.State) { n += nacks(s) })
		}
	}
	if n != p.nacks.n {
		p.nacks.n, p.nacks.last = n, time.Now()
	}
	return p.nacks.last
}

// pass waits until everything has happened that happens soon, and nothing new
// came meanwhile.
func (p *play) pass() {
	pace := p.pace()
	p.calm = p.calm && pace == time.Millisecond
	for range 20 {
		time.Sleep(pace)
		p.wait()
		if pace == time.Millisecond || time.Since(p.latest()) >= pace {
			return
		}
	}
	p.Fatalf("something changes all the time")
}

// latest is when something last changed that clients are sent.
func (p *play) latest() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.followMarks()
	latest := p.moved
	if p.followed.After(latest) {
		latest = p.followed
	}
	if nacked := p.nacked(); nacked.After(latest) {
		latest = nacked
	}
	if p.process != nil {
		if opens := p.process.since.Add(app.OptionalWait); opens.After(latest) && opens.Before(time.Now()) {
			latest = opens
		}
	}
	return latest
}

// split connects a client that takes clusters by name on a stream of their own, as
// an Envoy does that asks for them on demand. It takes their assignments on
// another, which is one of all types or of assignments alone, in the other variant
// of the protocol.
func (p *play) split(n nature) {
	assignments := ""
	if n.Secrets {
		assignments = xdsclient.EDS
	}
	n.GRPC, n.Secrets = false, false
	leader := p.join(n, xdsclient.CDS, nil)
	leader.Subscribe(xdsclient.CDS, onDemand()...)
	n.Delta = !n.Delta
	p.join(n, assignments, leader)
}

// onDemand names the clusters of all services that histories have.
func onDemand() (names []string) {
	for _, service := range serviceNames {
		for _, port := range []int{80, 90} {
			names = append(names, fmt.Sprintf("outbound|%d||%s.example", port, service))
		}
	}
	return names
}

// follow has clients ask for the assignments of the clusters that they take on
// another stream.
func (p *play) follow() (changed bool) {
	for _, c := range p.clients {
		if c.leader == nil || c.away || !c.IsConnected() {
			continue
		}
		var want, have []string
		c.leader.Read(func(s *xdsclient.State) { want = xdsclient.FollowClusters(s)[xdsclient.EDS] })
		c.Read(func(s *xdsclient.State) { have = s.Subscribed(xdsclient.EDS) })
		lacks := func(in []string) func(string) bool {
			return func(name string) bool { return slices.Contains(in, name) }
		}
		add, drop := slices.DeleteFunc(slices.Clone(want), lacks(have)), slices.DeleteFunc(slices.Clone(have), lacks(want))
		if len(add) > 0 {
			c.Subscribe(xdsclient.EDS, add...)
		}
		if len(drop) > 0 {
			c.Unsubscribe(xdsclient.EDS, drop...)
		}
		if len(add)+len(drop) > 0 {
			changed, p.followed = true, time.Now()
		}
	}
	return changed
}
