package servicecenter

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Config configures the behaviour of a stand-in. The zero value is the original's: a write
// is shown 0.3 s later, a deletion after 2 s more; an instance without heartbeats is
// removed.
type Config struct {
	Prompt    bool          // show every change at once, and hold no deletion
	KeepAlive bool          // no instance has to send heartbeats
	NoEvents  bool          // watchers get nothing, as with registry.cache.mode 0
	RuleDelay time.Duration // until a consumer's look-up becomes a dependency; default 20 ms
	Queue     int           // events that wait for a watcher at most; default 5,000
	// Accounts are names with their passwords. If there are any, every request
	// but a login needs a token.
	Accounts map[string]string
}

func (c Config) ruleDelay() time.Duration {
	if c.RuleDelay == 0 {
		return 20 * time.Millisecond
	}
	return c.RuleDelay
}

func (c Config) queue() int {
	if c.Queue == 0 {
		return queued
	}
	return c.Queue
}

// Server is one replica of a Service Center. Its methods for services and instances act on
// the tenant default/default.
type Server struct {
	*Tenant
	*backend

	// Guarded by the backend's mutex.
	cache    *shelf // the state that this replica has seen
	pipeline *pipeline
	kept     map[findKey]kept
	stalled  bool
	unseen   []func() // changes that came while stalled
	watchers map[serviceID]map[*watcher]bool
	held     chan struct{} // closed while events may be sent
	left     bool          // Close was called
	member   instanceID    // this replica itself

	router  http.Handler
	counts  *counts
	faults  *faults
	done    context.Context // ended by Close
	end     context.CancelFunc
	serving sync.WaitGroup
	http    *http.Server
	address string
}

// New makes a stand-in that does not listen yet. It holds the service
// SERVICECENTER, as the original holds itself.
func New(c Config) *Server {
	b := newBackend(c)
	s := b.replica()
	b.enrolItself()
	return s
}

// Replica makes a further replica. It shares the registered data, but sees changes on its
// own, and has its own address, faults and counters.
func (s *Server) Replica() *Server { return s.replica() }

func (b *backend) replica() *Server {
	done, end := context.WithCancel(context.Background())
	s := &Server{
		backend:  b,
		Tenant:   &Tenant{b, home},
		kept:     map[findKey]kept{},
		watchers: map[serviceID]map[*watcher]bool{},
		held:     make(chan struct{}),
		counts:   newCounts(),
		faults:   &faults{},
		done:     done,
		end:      end,
	}
	close(s.held)
	s.pipeline = newPipeline(s)
	s.router = s.routes()
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute, ConnState: s.account}
	b.mu.Lock()
	defer b.mu.Unlock()
	s.cache = b.truth.clone()
	b.replicas = append(b.replicas, s)
	return s
}

// Listen starts to serve on a free port of the loopback interface.
func (s *Server) Listen() error {
	l, err := (&net.ListenConfig{}).Listen(s.done, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.Serve(l)
	return nil
}

// Serve starts to serve on a listener, which Close closes.
func (s *Server) Serve(l net.Listener) {
	s.address = l.Addr().String()
	s.enrol(s.address)
	s.serving.Go(func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			panic(err) // another part closed the listener
		}
	})
}

// account counts the connections that Close waits for. A connection that became a websocket
// belongs to its request.
func (s *Server) account(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.serving.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.serving.Done()
	case http.StateActive, http.StateIdle:
	}
}

// Address is the host and port it listens on.
func (s *Server) Address() string { return s.address }

// URL returns the URL for the configuration of clients.
func (s *Server) URL() string { return "http://" + s.address }

// Close ends this replica: its connections are cut. The registered data is dropped with the
// last replica.
func (s *Server) Close() {
	s.end()
	_ = s.http.Close()
	s.leave()
	s.serving.Wait()
}

// enter counts a request that Close is to wait for; false if it is too late.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left {
		return false
	}
	s.serving.Add(1)
	return true
}

// leave takes a replica out; the last one ends the backend.
func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = true
	s.dropInstance(s.member)
	rest := s.replicas[:0:0]
	for _, r := range s.replicas {
		if r != s {
			rest = append(rest, r)
		}
	}
	s.replicas = rest
	if len(rest) > 0 {
		return
	}
	s.closed = true
	for t := range s.timers {
		t.Stop()
	}
}

// see applies a change to a replica, or delays it while the replica is stalled.
func (s *Server) see(f func()) {
	if s.stalled {
		s.unseen = append(s.unseen, f)
		return
	}
	f()
}

// show applies a change to the replica's view, and notifies the watchers.
func (s *Server) show(c change) {
	_, known := s.cache.instances[c.at][c.held.ID]
	switch {
	case c.action == Delete:
		s.cache.dropInstance(c.at, c.held.ID)
	case known:
		c.action = Update
		s.cache.putInstance(c.at, c.held)
	default:
		c.action = Create
		s.cache.putInstance(c.at, c.held)
	}
	service := s.cache.services[c.at]
	if service == nil {
		return // deleted by force: no watcher is notified
	}
	s.forget(c.at.tenant, service)
	s.publish(c, service)
}

// forget drops the cached finds of a service.
func (s *Server) forget(t tenant, of *Service) {
	for k := range s.kept {
		by := k.name
		by.name, _, _ = strings.Cut(by.name, "\x00") // in the form of findByID
		if by == nameOf(t, of) || by == aliasOf(t, of) {
			delete(s.kept, k)
		}
	}
}

// TB is the part of a test that [Start] uses.
type TB interface {
	Helper()
	Fatal(args ...any)
	Cleanup(f func())
}

// Start makes a stand-in that listens until the end of a test.
func Start(t TB, c Config) *Server {
	t.Helper()
	s := New(c)
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}
