package sourcetest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/hold"
)

// reading is a listing or a change that a source passes on.
type reading struct {
	listing *model.Listing // nil for a change
	whole   bool
	// poisoned is the host of an object with an invalid part.
	poisoned string
}

// version is the content of the registry for a while.
type version struct {
	services    Services
	from, until time.Time // until is zero for the present version
}

// guard sees all calls between a source, its supervisor and the store, and checks
// each commit against the laws.
type guard struct {
	lag, slack, tolerance time.Duration
	hold                  hold.Config

	mu sync.Mutex // guards the rest
	diary
	wrong string // the first violation

	versions []version
	outage   time.Time // since when the registry fails; zero if it does not
	began    time.Time // start of the process
	ran      time.Time // start of the run
	turns    int
	cut      context.CancelFunc // ends the run

	now      reading // the reading that the source passes on
	armed    faulty
	away     int  // commits that the store rejects
	afterAll bool // the store commits, and returns an error
	bad      string

	listings []time.Time // times of accepted listings, in this process
	wholes   int         // number of listings of the whole registry, in all processes
	commits  int         // on the machine's clock without commits of the mark of a stale source
	created  map[model.Ref]time.Time
}

func newGuard(m *mirroring) *guard {
	g := &guard{
		lag: m.Lag, slack: 2*m.Lag + m.terms().MaxBackoff, hold: m.terms().Hold,
		created: map[model.Ref]time.Time{},
	}
	if m.RealTime {
		g.slack, g.tolerance = time.Hour, g.hold.For/4
	}
	return g
}

// check throws the first violation, on the goroutine of the history.
func (g *guard) check() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wrong != "" {
		g.violated("%s", g.wrong)
	}
}

// finds notes a violation, on any goroutine.
func (g *guard) finds(format string, args ...any) {
	if g.wrong == "" {
		g.wrong = fmt.Sprintf(format, args...)
		g.log("WRONG: %s", g.wrong)
	}
}

func (g *guard) changes(s Services) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.log("the registry has %s", s)
	g.versions = append(g.versions, version{services: s, from: time.Now()})
}

func (g *guard) changed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.versions); n > 1 {
		g.versions[n-2].until = time.Now()
	}
}

// recent returns contents with a loss so recent that it is held again if more is
// lost.
func (g *guard) recent() (all []Services) {
	g.mu.Lock()
	defer g.mu.Unlock()
	since := time.Now().Add(-g.hold.For - g.slack)
	for _, v := range g.versions {
		if v.until.IsZero() || v.until.After(since) {
			all = append(all, v.services)
		}
	}
	return all
}

func (g *guard) fails(is bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.outage = (time.Time{}); is {
		g.outage = time.Now()
		return
	}
	g.log("the registry can be read")
}

func (g *guard) starts() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.log("a process starts")
	g.began, g.listings = time.Now(), nil
}

// runs notes that a run begins.
func (g *guard) runs(cut context.CancelFunc) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ran, g.cut = time.Now(), cut
	g.turns++
}

func (g *guard) interrupt() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.log("the run is interrupted")
	if g.cut != nil {
		g.cut()
	}
}

func (g *guard) arm(f faulty) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.log("%s what is passed on next", f)
	g.armed = f
}

func (g *guard) refuse(commits int, afterAll bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.log("the store fails %d times, after all: %t", commits, afterAll)
	g.away, g.afterAll = commits, afterAll
}

func (g *guard) refusing() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.away > 0
}

func (g *guard) poison(host string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.log("%s is poisoned", host)
	g.bad = host
}

func (g *guard) poisoned() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.bad
}

// calm ends all faults, and reports whether the source has to list anew for that.
func (g *guard) calm() (anew bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	anew = g.bad != ""
	g.armed, g.away, g.bad = none, 0, ""
	return anew
}

// seen returns the numbers of commits, of runs and of listings of everything.
func (g *guard) seen() (commits, runs, listings int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.commits, g.turns, g.wholes
}

// passes notes a reading that a source passes on, and returns its fault.
func (g *guard) passes(r reading) faulty {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.outage.IsZero() && g.ran.After(g.outage) {
		g.finds("something is passed on by a run that began during an outage: %+v", r.listing)
	}
	g.now = r
	f := g.armed
	g.armed = none
	return f
}

func (g *guard) passed(r reading) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.listing != nil {
		g.listings = append(g.listings, time.Now())
	}
	if r.whole {
		g.wholes++
	}
}
