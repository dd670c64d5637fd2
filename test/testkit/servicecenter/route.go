package servicecenter

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
)

// Route is a kind of request, for counters and faults.
type Route string

// The routes of the API.
const (
	Any Route = "" // every request

	Health             Route = "GET health"
	ListServices       Route = "GET microservices"
	GetService         Route = "GET microservice"
	Existence          Route = "GET existence"
	RegisterService    Route = "POST microservices"
	UnregisterService  Route = "DELETE microservice"
	Find               Route = "GET instances"
	BatchFind          Route = "POST instances/action"
	ListInstances      Route = "GET microservice instances"
	GetInstance        Route = "GET instance"
	RegisterInstance   Route = "POST instance"
	UnregisterInstance Route = "DELETE instance"
	Heartbeat          Route = "PUT heartbeat"
	InstanceStatus     Route = "PUT status"
	InstanceProperties Route = "PUT instance properties"
	Watch              Route = "GET watcher"
	GovernServices     Route = "GET govern/microservices"
	Token              Route = "POST token"

	unknown Route = "unknown"
)

// The parts of the addresses.
const (
	registry    = "/v4/{project}/registry"
	governing   = "/v4/{project}/govern"
	aService    = registry + "/microservices/{service}"
	anInstance  = aService + "/instances/{instance}"
	oldPrefix   = "/registry/v3/"
	sincePrefix = "/v4/default/registry/"
)

// The largest bodies that are taken.
const (
	maxBody           = 2 << 20
	maxInstanceBody   = 5 << 10
	maxPropertiesBody = 3 << 10
)

const (
	jsonType       = "application/json; charset=UTF-8"
	textType       = "text/plain; charset=UTF-8"
	revisionHeader = "X-Resource-Revision"
	consumerHeader = "X-ConsumerId"
	domainHeader   = "X-Domain-Name"
	serverName     = "SERVICECENTER/0.0.1"
)

// call is a request that is being answered, with the lock held.
type call struct {
	*http.Request
	tenant tenant
	body   []byte
	header http.Header // of the answer
}

func (c *call) query(name string) string { return c.URL.Query().Get(name) }

func (c *call) service() serviceID { return serviceID{c.tenant, c.PathValue("service")} }

func (c *call) instance() instanceID { return instanceID{c.service(), c.PathValue("instance")} }

// isTrue is how the original reads a flag in a query.
func (c *call) isTrue(name string) bool {
	v := strings.ToLower(strings.TrimSpace(c.query(name)))
	return v == "1" || v == "true"
}

// decode reads the body. The original says no more than that it could not, but
// for where it does: then of is the name of the type it has for it.
func (c *call) decode(into any, of string) *Error {
	err := json.Unmarshal(c.body, into)
	if err == nil {
		return nil
	}
	mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case of == "":
		return reject(Invalid, "Unmarshal error")
	case ok && mismatch.Field == "":
		return reject(Invalid, "json: cannot unmarshal %s into Go value of type discovery.%s", mismatch.Value, of)
	default:
		return reject(Invalid, "%s", err)
	}
}

// answerer answers a call: nil is an empty body, an error is an answer too.
type answerer func(*call) (any, *Error)

// notModified is the answer to who has the newest already.
type notModified struct{}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	add := func(route Route, pattern string, limit int64, answer answerer) {
		mux.Handle(pattern, s.route(route, s.authorized(s.answering(limit, answer))))
	}
	open := func(route Route, pattern string, answer answerer) { // to who has no token, too
		mux.Handle(pattern, s.route(route, s.answering(maxBody, answer)))
	}
	open(Health, "GET "+registry+"/health", s.health)
	add(ListServices, "GET "+registry+"/microservices", maxBody, s.listServices)
	add(GetService, "GET "+aService, maxBody, s.getService)
	add(Existence, "GET "+registry+"/existence", maxBody, s.existence)
	add(RegisterService, "POST "+registry+"/microservices", maxBody, s.registerService)
	add(UnregisterService, "DELETE "+aService, maxBody, s.unregisterService)
	add(Find, "GET "+registry+"/instances", maxBody, s.findInstances)
	add(BatchFind, "POST "+registry+"/instances/action", maxBody, s.batchFind)
	add(ListInstances, "GET "+aService+"/instances", maxBody, s.listInstances)
	add(GetInstance, "GET "+anInstance, maxBody, s.getInstance)
	add(RegisterInstance, "POST "+aService+"/instances", maxInstanceBody, s.registerInstance)
	add(UnregisterInstance, "DELETE "+anInstance, maxBody, s.unregisterInstance)
	add(Heartbeat, "PUT "+anInstance+"/heartbeat", maxBody, s.heartbeat)
	add(InstanceStatus, "PUT "+anInstance+"/status", maxBody, s.putStatus)
	add(InstanceProperties, "PUT "+anInstance+"/properties", maxPropertiesBody, s.putInstanceProperties)
	add(GovernServices, "GET "+governing+"/microservices", maxBody, s.governServices)
	mux.Handle("GET "+aService+"/watcher", s.route(Watch, s.authorized(http.HandlerFunc(s.watch))))
	mux.Handle("POST /v4/token", s.route(Token, http.HandlerFunc(s.login)))
	mux.Handle("/", s.route(unknown, http.NotFoundHandler()))
	return mux
}

// ServeHTTP answers a request. The older addresses are the newer ones in the
// default project.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.serving.Done()
	w.Header().Set("Server", serverName)
	w.Header().Set("Vary", "Origin")
	if rest, ok := strings.CutPrefix(r.URL.Path, oldPrefix); ok {
		r = r.Clone(r.Context())
		r.URL.Path = sincePrefix + rest
		r.URL.RawPath = ""
	}
	s.router.ServeHTTP(w, r)
}

// route counts a request, and lets a fault have its way with it.
func (s *Server) route(route Route, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.counts.add(route)
		if fault := s.faults.next(route); fault != nil {
			fault(s, w, r, next)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) answering(limit int64, answer answerer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
		if err != nil {
			write(w, nil, reject(Invalid, "%s", err))
			return
		}
		c := &call{Request: r, tenant: tenantOf(r), body: body, header: w.Header()}
		s.mu.Lock()
		value, rejection := answer(c)
		s.mu.Unlock()
		write(w, value, rejection)
	})
}

func tenantOf(r *http.Request) tenant {
	domain, project := r.Header.Get(domainHeader), r.PathValue("project")
	defaults(&domain, "default")
	defaults(&project, "default")
	return tenant(domain + "/" + project)
}

func write(w http.ResponseWriter, value any, rejection *Error) {
	status := http.StatusOK
	switch {
	case rejection != nil:
		status, value = rejection.Code.status(), rejection
	case value == nil:
		w.Header().Set("Content-Type", textType)
		w.WriteHeader(status)
		return
	case value == notModified{}:
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body, err := json.Marshal(value)
	if err != nil {
		panic(err) // only own types come here
	}
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}

// counts are how often each route was asked.
type counts struct {
	mu sync.Mutex
	by map[Route]int
}

func newCounts() *counts { return &counts{by: map[Route]int{}} }

func (c *counts) add(route Route) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by[route]++
	if route != Any {
		c.by[Any]++
	}
}

// Requests is how many requests of a route this replica has got.
func (s *Server) Requests(route Route) int {
	s.counts.mu.Lock()
	defer s.counts.mu.Unlock()
	return s.counts.by[route]
}

// AllRequests returns the number of requests to this replica, by route; the count of [Any]
// is their sum.
func (s *Server) AllRequests() map[Route]int {
	s.counts.mu.Lock()
	defer s.counts.mu.Unlock()
	return maps.Clone(s.counts.by)
}
