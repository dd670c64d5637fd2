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
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// Listed describes a kind of registry for [RunListed].
type Listed struct {
	// Open starts an empty registry, which is closed at the end of its history.
	Open func(t testing.TB) Registry
	// Faults are the ways in which the registry can fail, in words. Under each of
	// them, no complete listing can be read.
	Faults []string
	// Lag bounds the time until a running source has passed on a change of the
	// registry. It also bounds the time until the source notices an outage.
	Lag time.Duration
	// Reports says that the registry itself reports each deletion, one by one. So the
	// deletion is applied at once, unless it happens during an outage.
	Reports bool
	// Valid reports whether the registry rejects invalid objects of a host, so that
	// its service is never [Service.Bad]; nil if any can be.
	Valid func(host string) bool
	// RealTime runs histories on the machine's clock, for events that
	// testing/synctest cannot wait for, such as connections and file events.
	RealTime bool
	// Histories is their number unless -rapid.checks is given.
	Histories int
}

// Registry is a registry that the suite steers. One goroutine calls its methods,
// while sources read it.
type Registry interface {
	// Open makes a source of the registry, as a process does at its start.
	Open(env source.Env) source.Source
	// Set makes the registry hold exactly these services, whether it can be read at the
	// time or not. Content that it holds before and after, it holds all the while.
	Set(services Services)
	// Fail makes it fail in one of its ways, until Restore.
	Fail(way int)
	Restore()
	// Close ends it. No source runs any more.
	Close()
}

// Disconnecter is a registry with connections that may break, and events that may be
// lost with them.
type Disconnecter interface{ Disconnect() }

// RunListed checks sources of a kind of registry, under a supervisor, in a store in
// memory. Packages that call it check for leaked goroutines, in TestMain.
func RunListed(t *testing.T, l Listed) {
	t.Helper()
	t.Run("in memory", func(t *testing.T) {
		if l.RealTime { // such histories mostly wait
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
			histories = 0 // the following runs shrink it
			rt.Fatal(wrong)
		}
	})
}

// history runs one history, and returns its violation.
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

// endsWithin bounds the end of a source after it is cancelled, in the time of a bubble.
const endsWithin = 10 * time.Second

// terms returns the configuration of the supervisor.
func (m *mirroring) terms() supervise.Config {
	c := supervise.Config{
		Kind: "tried", MinBackoff: m.Lag / 100, MaxBackoff: m.Lag / 4,
		Hold: hold.Config{Share: 0.5, Min: 10, For: time.Minute},
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

// pass lets time pass.
func (m *mirroring) pass(d time.Duration) {
	time.Sleep(d)
	m.settle()
	m.guard.check()
}

// soon bounds the time of an outcome without obstacles.
func (m *mirroring) soon() time.Duration { return 2*m.Lag + 2*m.terms().MaxBackoff }

// settle waits until all pending events have happened, if the clock allows it.
func (m *mirroring) settle() {
	if !m.RealTime {
		synctest.Wait()
	}
}

// eventually waits for an outcome for a limited time. On the clock of the machine,
// the limit is long enough for a busy one.
func (m *mirroring) eventually(within time.Duration, check func() string) string {
	interval := within / 100
	if m.RealTime {
		within, interval = until.Patience, 2*time.Millisecond
	}
	for end := time.Now().Add(within); ; {
		m.settle()
		m.guard.check()
		wrong := check()
		if wrong == "" || time.Now().After(end) {
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

// describe describes the state for people.
func (m *mirroring) describe() string {
	status := m.process.super.Status()
	return fmt.Sprintf("the source is %s: %s; the registry has %s", status.State, status.Reason, m.content)
}
