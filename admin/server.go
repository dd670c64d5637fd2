package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/events"
	"github.com/isthmus-mesh/isthmus/internal/loglimit"
	"github.com/isthmus-mesh/isthmus/internal/loopback"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/source/supervise"
)

// Parts are the parts of an Isthmus that the admin API shows.
type Parts struct {
	// Version is that of the program, and Started when the process began.
	Version string
	Started time.Time
	// Sources returns the current sources, in the order of the configuration.
	Sources  func() []*supervise.Supervisor
	Snapshot func() *catalog.Snapshot
	// Outputs yields the report of each output, by its key in the configuration.
	Outputs iter.Seq2[string, output.Report]
	// Config returns the status of the configuration file.
	Config func() Config
	// Missing lists the obstacles to readiness.
	Missing func() []Obstacle
	// Stuck returns why the process makes no progress; empty if it does.
	Stuck func() string
	// Faults lists the panics that the process survived outside of engines; may be nil.
	Faults func() []Fault
	// Identity has the lasting failures of proofs and certificates.
	Identity []interface{ Problems() []identity.Problem }
	// Events are the newest changes.
	Events *events.Log
	// Store returns the state of the stored records on disk; nil if they are in memory alone.
	Store func() Disk
	// Authority makes the certificates of clients; nil if the built-in authority does not.
	Authority *authority.Issuer
	// Access is the access rules.
	Access Access
	// Metrics is where the process's metrics are registered.
	Metrics *prometheus.Registry
	Log     *slog.Logger
}

// Fault is a part of the process that panicked.
type Fault struct {
	Output string // its key in the configuration; empty for the catalog
	world.Panic
	Since time.Time // since when the part has failed; zero if it works again
}

// part names the part as findings do.
func (f Fault) part() string {
	if f.Output != "" {
		return "output " + f.Output
	}
	return "catalog"
}

// text describes the panics, with their consequence.
func (f Fault) text(now time.Time) string {
	text := fmt.Sprintf("%d panics in %s, the last %s ago: %s", f.Count, f.Where, age(now, f.Last), f.Text)
	if !f.Since.IsZero() {
		text += "; nothing newer is served, and it is tried again"
	}
	return text
}

// faults returns the faults of the parts.
func (p Parts) faults() []Fault {
	if p.Faults == nil {
		return nil
	}
	return p.Faults()
}

// Server is the admin HTTP server. Make one with [New].
type Server struct {
	access  Access
	http    *http.Server
	exposed atomic.Bool // the listener can be reached from beyond loopback
}

// New returns a server that shows parts.
func New(parts Parts) *Server {
	if parts.Log == nil {
		parts.Log = slog.New(slog.DiscardHandler)
	}
	running, stop := context.WithCancel(context.Background())
	s, a, f, o, h := &Server{access: parts.Access}, api{parts, newLosers(running, parts.Log)}, feed{parts, newFollowers()}, orders{parts}, holdings{parts}
	parts.Metrics.MustRegister(&collector{parts}, measures{parts})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", a.livez)
	mux.HandleFunc("GET /readyz", a.readyz)
	mux.Handle("GET /metrics", promhttp.HandlerFor(parts.Metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /api/v1/status", a.status)
	mux.HandleFunc("GET /api/v1/events", f.serve)
	mux.HandleFunc("GET /api/v1/config", a.config)
	mux.HandleFunc("GET /api/v1/sources", a.sources)
	mux.HandleFunc("POST /api/v1/sources/{name}/release", onlyJSON(o.release))
	mux.HandleFunc("POST /api/v1/sources/{name}/hold", onlyJSON(o.hold))
	mux.HandleFunc("GET /api/v1/services", a.services)
	mux.HandleFunc("GET /api/v1/services/{host}", a.service)
	mux.HandleFunc("GET /api/v1/services/{host}/clients", h.holders)
	mux.HandleFunc("POST /api/v1/splits/preview", onlyJSON(previewer{parts}.serve))
	mux.HandleFunc("GET /api/v1/clients", a.clients)
	mux.HandleFunc("GET /api/v1/clients/{id}/resources", h.resources)
	mux.HandleFunc("GET /api/v1/writers", a.writers)
	mux.HandleFunc("GET /api/v1/authority", h.authority)
	mux.HandleFunc("GET /api/v1/certificates", h.certificates)
	mux.HandleFunc("GET /api/v1/explain", explainer{parts}.serve)
	// Prevent cross-site requests by a page in an operator's browser.
	handler := &guard{
		Access: parts.Access, exposed: s.exposed.Load, next: http.NewCrossOriginProtection().Handler(mux),
		log: func(err error) { parts.Log.Error("admin token file unusable: all requests are denied", "err", err) },
	}
	// Any client can cause log lines of the library's server, such as failed handshakes.
	faults := slog.NewLogLogger(loglimit.New(parts.Log.With("listener", "admin").Handler()), slog.LevelWarn)
	s.http = &http.Server{
		Handler: newPacer(handler), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes, ErrorLog: faults,
	}
	s.http.RegisterOnShutdown(sync.OnceFunc(func() { close(f.followers.stopping) }))
	s.http.RegisterOnShutdown(stop)
	return s
}

// Serve answers requests until [Server.Stop].
func (s *Server) Serve(l net.Listener) error {
	s.exposed.Store(!loopback.IsAddr(l.Addr()))
	l = thrifty{l}
	if config := s.access.TLS; config != nil {
		l = tls.NewListener(l, config)
	}
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Stop closes the server, waiting for requests under way until ctx ends.
func (s *Server) Stop(ctx context.Context) {
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
}
