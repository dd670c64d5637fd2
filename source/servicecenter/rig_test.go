package servicecenter_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/servicecenter"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
	standin "github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
	"github.com/isthmus-mesh/isthmus/test/testkit/transcript"
)

// prompt is a registry that shows every change at once and asks for no heartbeats.
var prompt = standin.Config{Prompt: true, KeepAlive: true}

// poll is how often sources of tests ask.
const poll = 2 * time.Second

// network is loopback without the system, so that it can live in a test's own
// time: addresses of the form standin-N:1, and connections that are pipes.
type network struct {
	mu        sync.Mutex
	listeners map[string]*listener
}

type listener struct {
	address string
	conns   chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *listener) Addr() net.Addr { return l }

func (l *listener) Network() string { return "tcp" }
func (l *listener) String() string  { return l.address }

func (n *network) listen() *listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &listener{address: fmt.Sprintf("standin-%d:1", len(n.listeners)), conns: make(chan net.Conn), closed: make(chan struct{})}
	n.listeners[l.address] = l
	return l
}

func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[address]
	n.mu.Unlock()
	unreachable := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	if l == nil {
		return nil, unreachable
	}
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, unreachable
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// rig is a registry and what mirrors it, in a time of its own.
type rig struct {
	*testing.T
	*standin.Server
	net     *network
	servers []*standin.Server
	store   *store.Memory
	log     *transcript.Log
}

// bubble runs a test against a registry, in a time of its own.
func bubble(t *testing.T, config standin.Config, test func(r *rig)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, net: &network{listeners: map[string]*listener{}}, store: store.NewMemory(store.Config{}), log: &transcript.Log{}}
		r.Server = standin.New(config)
		r.serve(r.Server)
		defer func() {
			for _, s := range r.servers {
				s.Close()
			}
		}()
		test(r)
	})
}

func (r *rig) serve(s *standin.Server) {
	s.Serve(r.net.listen())
	r.servers = append(r.servers, s)
}

// replica adds a member to the registry.
func (r *rig) replica() *standin.Server {
	s := r.Replica()
	r.serve(s)
	return s
}

// config names every member.
func (r *rig) config() servicecenter.Config {
	c := servicecenter.Config{Poll: poll}
	for _, s := range r.servers {
		c.Addresses = append(c.Addresses, s.URL())
	}
	return c
}

// mirror is a source under its supervisor.
type mirror struct {
	*rig
	*supervise.Supervisor
	name string
	stop func()
}

// mirror runs a source named "sc" until the test ends, and waits for what it
// does first.
func (r *rig) mirror(c servicecenter.Config) *mirror {
	r.Helper()
	return r.mirrorAs("one", "sc", c, r.store)
}

func (r *rig) mirrorAs(instance, name string, c servicecenter.Config, into *store.Memory) *mirror {
	r.Helper()
	c = servicecenter.WithDefaults(c)
	if err := c.Validate(); err != nil {
		r.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(r.log, nil))
	src := servicecenter.New(c, servicecenter.Options{
		Instance: instance, Name: name, Log: log,
		Stored: func() iter.Seq[model.Record] { return into.List(model.Filter{Source: name}) },
	})
	src.DialWith(r.net.dial)
	m := &mirror{rig: r, name: name, Supervisor: supervise.New(name, src, into, supervise.Config{Kind: "servicecenter", Log: log, MaxBackoff: 5 * time.Second})}
	ctx, cancel := context.WithCancel(r.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	m.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			r.Error(err)
		}
	})
	r.Cleanup(m.stop)
	synctest.Wait()
	return m
}

// pass lets time go by.
func (r *rig) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// rounds lets a number of rounds go by.
func (r *rig) rounds(n int) { r.pass(time.Duration(n) * poll * 5 / 4) }

// service registers a version of a service of the app shop.
func (r *rig) service(environment, called, version string) (id string) {
	return r.Register(standin.Service{Environment: environment, App: "shop", Name: called, Version: version})
}

// instance registers an instance that serves HTTP on an address.
func (r *rig) instance(service, id, address string) {
	r.RegisterInstance(service, standin.Instance{ID: id, HostName: "h-" + id, Endpoints: []string{"rest://" + address}})
}

// many registers a service with instances 10.0.N.1 and on.
func (r *rig) many(called string, net, instances int) (id string) {
	id = r.service("", called, "1.0.0")
	for n := range instances {
		r.instance(id, fmt.Sprintf("%s-%03d", called, n), fmt.Sprintf("10.0.%d.%d:8080", net, n+1))
	}
	return id
}

// stored is what the mirror holds, one line for each record of a kind that says
// something of services, and of those that are not as the registry says, why.
func (m *mirror) stored() string { return storedIn(m.store, m.name) }

func storedIn(s *store.Memory, name string) string {
	var all []string
	var holds model.Holds
	for rec := range s.List(model.Filter{Kind: model.KindHold}) {
		holds.Add(rec)
	}
	for rec := range s.List(model.Filter{Source: name}) {
		text := ""
		switch spec := rec.Spec.(type) {
		case model.Service:
			text = rec.Name + " at " + rec.Place + ":"
			for p := range spec.Ports.All() {
				text += " " + p.Name
			}
		case model.Endpoint:
			text = rec.Name + " = " + spec.Address
			if spec.Health != model.Healthy {
				text += " " + string(spec.Health)
			}
		default:
			continue
		}
		if rec.Status.Stale != "" {
			text += " (stale)"
		}
		if _, held := holds.Of(rec.Ref, rec.Owner); held {
			text += " (held)"
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// wants checks what is stored.
func (m *mirror) wants(lines ...string) {
	m.Helper()
	slices.Sort(lines)
	if got := m.stored(); got != strings.Join(lines, "\n") {
		m.Errorf("stored:\n%s\n\nwant:\n%s", got, strings.Join(lines, "\n"))
	}
}

// is checks the state of the source.
func (m *mirror) is(state source.State, reason string) {
	m.Helper()
	if s := m.Status(); s.State != state || !strings.Contains(s.Reason, reason) {
		m.Errorf("the source is %s: %s; want %s: %s", s.State, s.Reason, state, reason)
	}
}

// rejects checks that something stands rejected, and why.
func (m *mirror) rejects(object, reason string) {
	m.Helper()
	for _, f := range m.Status().Rejected {
		if strings.Contains(f.Object, object) && strings.Contains(f.Reason, reason) {
			return
		}
	}
	m.Errorf("nothing of %s is rejected because of %q: %v", object, reason, m.Status().Rejected)
}
