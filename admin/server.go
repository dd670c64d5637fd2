package admin

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/internal/loglimit"
	"github.com/isthmus-mesh/isthmus/internal/loopback"
	"github.com/isthmus-mesh/isthmus/internal/plain"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/source/supervise"
)

// Parts are the parts of an Isthmus that the admin API shows.
type Parts struct {
	// Sources returns the current sources, in the order of the configuration.
	Sources  func() []*supervise.Supervisor
	Snapshot func() *catalog.Snapshot
	// Outputs yields the report of each output, by its key in the configuration.
	Outputs iter.Seq2[string, output.Report]
	// Config returns the status of the configuration file.
	Config func() Config
	// Missing lists the obstacles to readiness, one sentence each.
	Missing func() []string
	// Stuck returns why the process makes no progress; empty if it does.
	Stuck func() string
	// Faults lists the panics that the process survived outside of engines; may be nil.
	Faults func() []Fault
	// Store describes how far the stored records are on disk; nil if they are in memory alone.
	Store func() string
	// Access is the access rules.
	Access Access
	// Metrics is where the process's metrics are registered.
	Metrics *prometheus.Registry
	Log     *slog.Logger
}

// Fault is a part of the process that panicked.
type Fault struct {
	Output string // its key in the configuration; empty for the catalog
	push.Panic
	Since time.Time // since when the part has failed; zero if it works again
}

func (f Fault) String() string {
	name := "catalog"
	if f.Output != "" {
		name = "output " + f.Output
	}
	now := time.Now()
	text := fmt.Sprintf("%s: %d panics in %s, the last %s ago: %s; ", name, f.Count, f.Where, age(now, f.Last), f.Text)
	if !f.Since.IsZero() {
		text += fmt.Sprintf("nothing newer is served for %s, and it is tried again; ", age(now, f.Since))
	}
	return text + "please report it with the log"
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
	parts   Parts
	http    *http.Server
	exposed atomic.Bool // the listener can be reached from beyond loopback
}

// New returns a server that shows parts.
func New(parts Parts) *Server {
	if parts.Log == nil {
		parts.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{parts: parts}
	parts.Metrics.MustRegister(&collector{parts}, measures{parts})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", s.livez)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET /metrics", promhttp.HandlerFor(parts.Metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /api/v1/config", s.config)
	mux.HandleFunc("GET /api/v1/sources", s.sources)
	mux.HandleFunc("POST /api/v1/sources/{name}/release", onlyJSON(s.release))
	mux.HandleFunc("GET /api/v1/services", s.services)
	mux.HandleFunc("GET /api/v1/services/{host}", s.service)
	mux.HandleFunc("GET /api/v1/clients", s.clients)
	mux.HandleFunc("GET /api/v1/clients/{id}/resources", s.resources)
	mux.HandleFunc("GET /api/v1/writers", s.writers)
	// Prevent cross-site requests by a page in an operator's browser.
	handler := &guard{
		Access: parts.Access, exposed: s.exposed.Load, next: http.NewCrossOriginProtection().Handler(mux),
		log: func(err error) { parts.Log.Error("the admin API lets nobody in", "err", err) },
	}
	// Any client can cause log lines of the library's server, such as failed handshakes.
	faults := slog.NewLogLogger(loglimit.New(parts.Log.With("listener", "admin").Handler()), slog.LevelWarn)
	s.http = &http.Server{
		Handler: newPacer(handler), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes, ErrorLog: faults,
	}
	return s
}

// Serve answers requests until [Server.Stop].
func (s *Server) Serve(l net.Listener) error {
	s.exposed.Store(!loopback.IsAddr(l.Addr()))
	l = thrifty{l}
	if config := s.parts.Access.TLS; config != nil {
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

func (s *Server) livez(w http.ResponseWriter, _ *http.Request) {
	if reason := s.parts.Stuck(); reason != "" {
		fail(w, http.StatusServiceUnavailable, "%s", reason)
		return
	}
	say(w, "ok")
}

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	missing := s.parts.Missing()
	if len(missing) > 0 {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusServiceUnavailable)
		say(w, "not ready")
		for _, m := range missing {
			say(w, "missing: %s", m)
		}
	} else {
		say(w, "ok")
	}
	if !isVerbose(r) {
		return
	}
	now := time.Now()
	for _, supervisor := range s.parts.Sources() {
		status := supervisor.Status()
		say(w, "source %s: %s for %s%s", status.Name, status.State, age(now, status.Since), withReason(status.Reason))
	}
	if s.parts.Store != nil {
		say(w, "store: %s", s.parts.Store())
	}
	for _, f := range s.parts.faults() {
		say(w, "%s", f)
	}
	for _, o := range s.parts.served() {
		for _, p := range o.Engine.Panics() {
			if p.Count > 0 {
				say(w, "output %s: %d panics in a %s, the last %s ago: %s; please report it with the log", o.name, p.Count, p.Where, age(now, p.Last), p.Text)
			}
		}
	}
	s.parts.Config().writeProblems(w)
}

func withReason(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// say writes one line of text; its arguments may be foreign text.
func say(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, plain.Text(fmt.Sprintf(format, args...)))
}

// fail answers with a status and an error text.
func fail(w http.ResponseWriter, status int, format string, args ...any) {
	http.Error(w, plain.Text(fmt.Sprintf(format, args...)), status)
}

// reply writes a value as JSON.
func (s *Server) reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(plain.JSONWriter(w))
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		s.parts.Log.Debug("an admin client went away", "err", err)
	}
}

// replyList writes a list as JSON, element by element: only the part that is being sent is
// in memory.
func replyList[T any](s *Server, w http.ResponseWriter, list iter.Seq[T]) {
	w.Header().Set("Content-Type", "application/json")
	out := bufio.NewWriterSize(w, chunk)
	before := "[\n  "
	for element := range list {
		text, err := json.MarshalIndent(element, "  ", "  ")
		if err == nil {
			_, _ = out.WriteString(before)
			_, err = out.Write(plain.JSON(text))
		}
		if err != nil {
			s.parts.Log.Debug("an admin client went away", "err", err)
			panic(http.ErrAbortHandler) // otherwise the client would mistake a part for the whole
		}
		before = ",\n  "
	}
	end := "\n]\n"
	if before[0] == '[' {
		end = "[]\n"
	}
	_, _ = out.WriteString(end)
	_ = out.Flush() // the server detects that the client is gone
}

// age returns the time since then, to the second; to the millisecond below one.
func age(now, then time.Time) string {
	if then.IsZero() {
		return ""
	}
	d := max(now.Sub(then), 0)
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
