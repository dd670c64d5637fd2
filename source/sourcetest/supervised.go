package sourcetest

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// process is a process that mirrors the registry.
type process struct {
	super *supervise.Supervisor
	store Store
	kill  context.CancelFunc
	ended chan struct{}
	err   error // once it has ended
}

// start begins a process. Records stored before are served unchanged.
func (m *mirroring) start() {
	ctx, kill := context.WithCancel(m.ctx)
	s := m.store
	m.settle()
	p := &process{store: s, kill: kill, ended: make(chan struct{})}
	src := m.registry.Open(source.Env{Instance: "here", Name: listed, Log: slog.New(slog.DiscardHandler), Stored: storedBy(s)})
	p.super = supervise.New(listed, &tampered{src, m.guard}, &guarded{s, m.guard}, m.terms())
	m.process = p
	m.guard.starts()
	go func() {
		defer close(p.ended)
		p.err = p.super.Run(ctx)
	}()
	m.pass(0)
}

// stop ends the process, at whatever moment that is, and within bounds.
func (m *mirroring) stop() {
	m.note("the process ends")
	p := m.process
	p.kill()
	within := endsWithin
	if m.RealTime {
		within = until.Patience
	}
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case <-p.ended:
	case <-late.C:
		m.violated("the source has not ended %s after it was cancelled", within)
	}
	if p.err != nil {
		m.violated("the supervisor ended with %v", p.err)
	}
	m.guard.check()
}

// faulty is the kind of a fault that is injected when a source passes on a reading.
type faulty int

const (
	none faulty = iota
	panicsBefore
	panicsAfter
	failsBefore
	failsAfter
)

var faults = []faulty{panicsBefore, panicsAfter, failsBefore, failsAfter}

func (f faulty) String() string {
	return []string{"nothing", "a panic before", "a panic after", "an error before", "an error after"}[f]
}

var errTampered = errors.New("as drawn")

// tampered is a source with every step observed, and with injected faults.
type tampered struct {
	source.Source
	guard *guard
}

// Run implements [source.Source].
func (s *tampered) Run(ctx context.Context, sink source.Sink) error {
	ctx, interrupt := context.WithCancel(ctx)
	defer interrupt()
	s.guard.runs(interrupt)
	return s.Source.Run(ctx, &tamperedSink{sink, s.guard})
}

type tamperedSink struct {
	source.Sink
	guard *guard
}

// Replace implements [source.Sink].
func (k *tamperedSink) Replace(ctx context.Context, l model.Listing) error {
	objects, poisoned := poison(l.Objects, k.guard.poisoned())
	l.Objects = objects
	return k.pass(reading{listing: &l, whole: l.Places == nil, poisoned: poisoned}, func() error { return k.Sink.Replace(ctx, l) })
}

// Change implements [source.Sink].
func (k *tamperedSink) Change(ctx context.Context, c model.Change) error {
	objects, poisoned := poison(c.Upserts, k.guard.poisoned())
	c.Upserts = objects
	return k.pass(reading{poisoned: poisoned}, func() error { return k.Sink.Change(ctx, c) })
}

// pass passes a reading on, and injects the drawn fault.
func (k *tamperedSink) pass(r reading, on func() error) error {
	fault := k.guard.passes(r)
	switch fault {
	case panicsBefore:
		panic("as drawn, before")
	case failsBefore:
		return errTampered
	case none, panicsAfter, failsAfter:
	}
	err := on()
	if err == nil {
		k.guard.passed(r)
	}
	switch fault {
	case panicsAfter:
		panic("as drawn, after")
	case failsAfter:
		return errTampered
	default:
		return err
	}
}

// poison adds an invalid part to the object of a service, so that the whole is
// rejected. It returns the host if there is such an object.
func poison(objects []model.Object, host string) (_ []model.Object, poisoned string) {
	if host == "" {
		return objects, ""
	}
	all := append([]model.Object(nil), objects...)
	for i, o := range all {
		if hostOf(o.Record, nil) == host {
			bad := model.Record{Ref: o.Record.Ref, Spec: model.Endpoint{Address: "10.9.9.9"}}
			bad.Kind, bad.Name = model.KindEndpoint, "of another/1"
			all[i].Owned = append(append([]model.Record(nil), o.Owned...), bad)
			poisoned = host
		}
	}
	return all, poisoned
}
