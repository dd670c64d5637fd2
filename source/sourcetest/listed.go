package sourcetest

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/store"
)

// Listed is what [RunListed] needs to know of a kind of registry.
type Listed struct {
	// Open starts an empty registry, which is closed at the end of its history.
	Open func(t testing.TB) Registry
	// Faults are the ways in which it can fail, in words. Whichever it is, no
	// complete listing can be read.
	Faults []string
	// Lag is within what a change of the registry has been passed on by a source that
	// runs, and within what a source notices that the registry fails.
	Lag time.Duration
	// Reports says that the registry itself reports what is deleted, one by one, so
	// that it passes at once, unless it happens during an outage.
	Reports bool
	// Valid reports whether the registry takes nothing bad of a host, so that its service
	// is never [Service.Bad]; nil if any can be.
	Valid func(host string) bool
	// RealTime runs histories on the clock of the machine: for what
	// testing/synctest cannot wait for, such as connections and file events.
	RealTime bool
	// Histories is how many there are unless -rapid.checks says otherwise.
	Histories int
}

// Registry is one that the suite steers. Its methods are called by one goroutine,
// while sources read it.
type Registry interface {
	// Open makes a source of the registry, as a process does at its start.
	Open(env source.Env) source.Source
	// Set has the registry hold these services and no others, whether it can be read
	// at the time or not. What it holds before and after, it holds all the while.
	Set(services Services)
	// Fail has it fail in one of its ways, until Restore.
	Fail(way int)
	Restore()
	// Close ends it. No source runs any more.
	Close()
}

// Disconnecter is a registry with connections that may break, and events that may
// be lost with them.
type Disconnecter interface{ Disconnect() }

// RunListed checks sources of a kind of registry, under a supervisor, in a store in
// memory. Packages that call it look for goroutines that are left, in TestMain.
func RunListed(t *testing.T, l Listed) {
	t.Helper()
	t.Run("in memory", func(t *testing.T) {
		if l.RealTime { // such histories wait far more than they work
			t.Parallel()
		}
		l.check(t)
	})
}

// check runs histories.
func (l Listed) check(t *testing.T) {
	t.Helper()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "rapid.checks" })
	histories := 0
	rapid.Check(t, func(rt *rapid.T) {
		if histories++; l.Histories > 0 && histories > l.Histories && !said && !t.Failed() {
			return
		}
		if wrong := l.history(t, rt); wrong != "" {
			histories = 0 // those that follow make it shorter
			rt.Fatal(wrong)
		}
	})
}

// history runs one, and returns what is wrong.
func (l Listed) history(t *testing.T, rt *rapid.T) (wrong string) {
	t.Helper()
	var thrown any
	play := func(t *testing.T) {
		ctx, end := context.WithCancel(context.Background())
		m := &mirroring{Listed: l, t: rt, ctx: ctx, store: store.NewMemory(store.Config{}), registry: l.Open(t)}
		defer func() {
			thrown = recover()
			m.close()
			end()
			m.settle()
		}()
		m.run()
	}
	if l.RealTime {
		play(t)
	} else {
		synctest.Test(t, play)
	}
	if v, ok := thrown.(*violation); ok {
		return v.text
	}
	if thrown != nil {
		panic(thrown)
	}
	return ""
}

// mirroring is one history of a registry, and of processes that mirror it one after
// the other.
type mirroring struct {
	Listed
	t        *rapid.T
	ctx      context.Context //nolint:containedctx // of the whole history
	store    Store
	registry Registry

	guard   *guard
	process *process // nil before the first
	content Services
	failing bool
	left    map[string]*leeway
}

// Bounds of what happens.
const (
	endsWithin = 10 * time.Second // after it is cancelled
	patience   = 30 * time.Second // for what happens on the clock of the machine
)

// terms are those by which the source is supervised.
func (m *mirroring) terms() source.Config {
	c := source.Config{
		Kind: "tried", MinBackoff: m.Lag / 100, MaxBackoff: m.Lag / 4,
		Hold: source.Hold{Share: 0.5, Min: 10, For: time.Minute},
	}
	if m.RealTime {
		c.Hold.For = 100 * time.Millisecond
	}
	return c
}

func (m *mirroring) run() {
	m.guard = newGuard(m)
	m.left = map[string]*leeway{}
	m.set(drawListed(m.t))
	if rapid.IntRange(0, 3).Draw(m.t, "starts during an outage") == 0 {
		m.fail()
	}
	m.start()
	for range rapid.IntRange(1, 3).Draw(m.t, "acts") {
		for range rapid.IntRange(0, 8).Draw(m.t, "steps") {
			m.step()
		}
		m.rest()
		if rapid.Bool().Draw(m.t, "looks") {
			m.look()
		}
	}
	m.heal()
	m.rest()
	m.idle()
	m.stop()
}

// close ends everything, whatever became of the history.
func (m *mirroring) close() {
	if m.process != nil {
		m.process.kill()
		<-m.process.ended
	}
	m.registry.Close()
}

// pass has time pass.
func (m *mirroring) pass(d time.Duration) {
	time.Sleep(d)
	m.settle()
	m.guard.check()
}

// soon is within what something has come about that nothing stands in the way of.
func (m *mirroring) soon() time.Duration { return 2*m.Lag + 2*m.terms().MaxBackoff }

// settle has all that can happen at this time happen, where the clock allows it.
func (m *mirroring) settle() {
	if !m.RealTime {
		synctest.Wait()
	}
}

// eventually waits for an outcome: so long, or on the clock of the machine for as
// long as a busy one may take.
func (m *mirroring) eventually(within time.Duration, check func() string) string {
	interval := within / 100
	if m.RealTime {
		within, interval = patience, 2*time.Millisecond
	}
	for until := time.Now().Add(within); ; {
		m.settle()
		m.guard.check()
		wrong := check()
		if wrong == "" || time.Now().After(until) {
			return wrong
		}
		time.Sleep(interval)
	}
}

func (m *mirroring) note(format string, args ...any) {
	m.guard.mu.Lock()
	defer m.guard.mu.Unlock()
	m.guard.log(format, args...)
}

func (m *mirroring) violated(format string, args ...any) {
	m.guard.mu.Lock()
	defer m.guard.mu.Unlock()
	m.guard.violated(format, args...)
}

// describe is for people.
func (m *mirroring) describe() string {
	status := m.process.super.Status()
	return fmt.Sprintf("the source is %s: %s; the registry has %s", status.State, status.Reason, m.content)
}
