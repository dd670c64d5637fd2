package envoy_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	churnFor     = time.Minute
	churnMembers = 8
	churnPause   = 700 * time.Millisecond // at most, between two changes of a service
)

// churn is random changes of services under load.
type churn struct {
	*member
	random  *rand.Rand
	watcher *watcher
	pending *pending
	gone    []spot // by the change that is being made
	changes *atomic.Int64
}

// TestRandomChurnFailsNoRequest changes everything that can be changed about
// services, at random and at once, while requests go to all of them.
func TestRandomChurnFailsNoRequest(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	m.Envoy = "leds: {above: 1}" // so that requests meet endpoints that came one by one, over delta
	var b book
	var members []*member
	for n := range churnMembers {
		members = append(members, newMember(m, &b, fmt.Sprintf("churn-%d", n), 1+n%3))
	}
	m.Serve("")
	m.Connect(true)
	m.Connect(false)
	m.AwaitActive("every service")
	loads := []*load{startLoad(t, &b, m.Proxies[0], 10*time.Millisecond), startLoad(t, &b, m.Proxies[1], 10*time.Millisecond)}
	w, stop := startWatcher(m)
	defer stop()

	var changes atomic.Int64
	pending := newPending()
	var done sync.WaitGroup
	end := time.Now().Add(churnFor)
	for n, s := range members {
		c := &churn{member: s, random: rand.New(rand.NewPCG(*seed, uint64(n))), watcher: w, pending: pending, changes: &changes}
		done.Go(func() { c.run(end) })
	}
	done.Wait()
	m.AwaitActive("what came of it")
	m.MustShowWhatEnvoysHold()
	pending.wait()
	for _, l := range loads {
		l.MustNotHaveFailed()
	}
	stop()
	figures.add(t, "%d changes in %s (%d overtaken by the next): active %s", changes.Load(), churnFor, w.superseded, spread(w.active))
	figures.add(t, "%d endpoints left Envoys: %s; backends stop after %s", len(w.left), spread(w.left), notice)
}

func (c *churn) run(end time.Time) {
	ops := []func() string{c.add, c.takeAway, c.replace, c.reweigh, c.relocate, c.resolve, c.resolve, c.moveEndpoints, c.speak, c.renamePort, c.moveHost, c.leaveAndReturn}
	for time.Now().Before(end) && !c.m.Failed() { // the first failure is to be looked at, not what comes of it
		what := ops[c.random.IntN(len(ops))]()
		if what == "" {
			continue // it came to nothing, or has been made already
		}
		await := c.make(what)
		if c.random.IntN(2) == 0 {
			await()
		}
		time.Sleep(time.Duration(c.random.Int64N(int64(churnPause))))
	}
}

// make writes what was changed. Backends that are gone stop a second after the last Envoy
// was seen without them.
func (c *churn) make(what string, formerHosts ...string) (await func()) {
	c.changes.Add(1)
	c.publish(what)
	hosts := map[string]bool{c.host: true}
	for _, host := range formerHosts {
		hosts[host] = true
	}
	await = c.watcher.changed(c.member, what, hosts, c.gone, func(s spot) func() { return c.pending.later(notice, s.Stop) })
	c.gone = nil
	return await
}

func (c *churn) add() string {
	if len(c.spots) > 4 || c.resolution == "DNS_ROUND_ROBIN" {
		return ""
	}
	c.spots = append(c.spots, c.start())
	return "one more endpoint"
}

func (c *churn) takeAway() string {
	if len(c.spots) == 1 {
		return ""
	}
	n := c.random.IntN(len(c.spots))
	c.gone = c.drop(n, n+1)
	return "one endpoint less"
}

func (c *churn) replace() string {
	count := len(c.spots)
	for range count {
		c.spots = append(c.spots, c.start())
	}
	c.gone = c.drop(0, count)
	return "all endpoints replaced"
}

func (c *churn) reweigh() string {
	c.spots[c.random.IntN(len(c.spots))].weight = 1 + c.random.Uint32N(9)
	return "a weight"
}

func (c *churn) relocate() string {
	c.spots[c.random.IntN(len(c.spots))].locality = []string{"", "r1", "r1/z1", "r2/z1/s1"}[c.random.IntN(4)]
	return "a locality"
}

func (c *churn) resolve() string {
	c.resolution = resolutions[c.random.IntN(len(resolutions))]
	switch c.resolution {
	case "DNS_ROUND_ROBIN":
		c.gone, c.selected = c.drop(1, len(c.spots)), false
	case "NONE":
		c.selected = false
	}
	return "resolution " + c.resolution
}

// moveEndpoints writes them as workloads, or back.
func (c *churn) moveEndpoints() string {
	if c.resolution != "STATIC" && c.resolution != "DNS" {
		return ""
	}
	c.selected = !c.selected
	return fmt.Sprintf("endpoints by selector: %t", c.selected)
}

func (c *churn) speak() string {
	c.port.Protocol = []string{"HTTP", "HTTP2", "GRPC"}[c.random.IntN(3)]
	return "protocol " + c.port.Protocol
}

func (c *churn) renamePort() string {
	c.port.Name = fmt.Sprint("port-", c.random.IntN(100))
	return "port " + c.port.Name
}

// moveHost gives the service another host and port. It answers again once that
// is known.
func (c *churn) moveHost() string {
	former := c.host
	c.host = fmt.Sprintf("%s-%d.localhost", c.Service, c.random.IntN(1000))
	c.port.Number = 80 + c.random.Uint32N(20)
	c.answering(false)
	c.make("host "+c.host, former)()
	c.book.change(c.target, func(t *target) { t.Cluster = clusterName(c.host, c.port.Number) })
	c.answering(true)
	return ""
}

// leaveAndReturn takes the service away for a while.
func (c *churn) leaveAndReturn() string {
	c.answering(false)
	c.absent = true
	c.make("removed")()
	c.absent = false
	c.make("returned")()
	c.answering(true)
	return ""
}

func (c *churn) answering(yes bool) {
	c.book.change(c.target, func(t *target) { t.Answering = yes })
}
