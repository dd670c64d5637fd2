package servicecenter

import (
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Fault is a failure of a request. It may call next for the regular answer.
type Fault func(s *Server, w http.ResponseWriter, r *http.Request, next http.Handler)

// FailWith answers with an error, as the original words it.
func FailWith(code Code) Fault {
	return func(_ *Server, w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		write(w, nil, reject(code, ""))
	}
}

// Answer answers with any status and body: a proxy's error page, say.
func Answer(status int, contentType, body string) Fault {
	return func(_ *Server, w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// Empty answers with success, and with no body where there must be one.
func Empty() Fault { return Answer(http.StatusOK, jsonType, "") }

// Garbage answers with success and a body that is no JSON.
func Garbage() Fault { return Answer(http.StatusOK, jsonType, "\x00<html>{\"services\":[") }

// Hang never answers.
func Hang() Fault { return Late(1<<63 - 1) }

// Late answers after some time, unless the client leaves first.
func Late(by time.Duration) Fault {
	return func(s *Server, w http.ResponseWriter, r *http.Request, next http.Handler) {
		timer := time.NewTimer(by)
		defer timer.Stop()
		select {
		case <-timer.C:
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		case <-s.done.Done():
			panic(http.ErrAbortHandler)
		}
	}
}

// CutOff answers rightly, but the connection breaks after so many bytes of the
// body.
func CutOff(after int) Fault {
	return func(_ *Server, w http.ResponseWriter, r *http.Request, next http.Handler) {
		whole := &answered{header: w.Header(), status: http.StatusOK}
		next.ServeHTTP(whole, r)
		w.Header().Set("Content-Length", strconv.Itoa(len(whole.body)))
		w.WriteHeader(whole.status)
		_, _ = w.Write(whole.body[:min(after, max(0, len(whole.body)-1))])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// answered is an answer that is not on its way yet.
type answered struct {
	header http.Header
	status int
	body   []byte
}

// Header implements [http.ResponseWriter].
func (a *answered) Header() http.Header { return a.header }

// WriteHeader implements [http.ResponseWriter].
func (a *answered) WriteHeader(status int) { a.status = status }

// Write implements [http.ResponseWriter].
func (a *answered) Write(b []byte) (int, error) {
	a.body = append(a.body, b...)
	return len(b), nil
}

// faults are the injected faults.
type faults struct {
	mu     sync.Mutex
	orders []*order
	keys   func(Key) bool // the keys with failing finds in a batch
	code   Code
}

type order struct {
	route Route
	fault Fault
	left  int // times; forever if negative
}

// Inject makes the next so many requests of a route fail, or all of them if times is 0,
// until [Server.Repair].
func (s *Server) Inject(route Route, fault Fault, times int) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	if times == 0 {
		times = -1
	}
	s.faults.orders = append(s.faults.orders, &order{route, fault, times})
}

// FailKeys has the finds of some keys fail inside of batches that succeed.
func (s *Server) FailKeys(code Code, which func(Key) bool) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.code, s.faults.keys = code, which
}

// Repair ends all faults of [Server.Inject] and [Server.FailKeys].
func (s *Server) Repair() {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.orders, s.faults.keys = nil, nil
}

func (f *faults) next(route Route) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.orders {
		if o.left == 0 || o.route != Any && o.route != route {
			continue
		}
		if o.left > 0 {
			o.left--
		}
		return o.fault
	}
	return nil
}

// of returns the fault of a key of a batch.
func (f *faults) of(k Key) *Error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keys == nil || !f.keys(k) {
		return nil
	}
	return reject(f.code, "")
}

// Stall has this replica see nothing new: its cache is old from now on.
func (s *Server) Stall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stalled = true
}

// Resume shows this replica the changes that it missed.
func (s *Server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	unseen := s.unseen
	s.stalled, s.unseen = false, nil
	for _, f := range unseen {
		f()
	}
}
