package kubeapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/managedfields"
)

// Object is an object as JSON has it.
type Object = map[string]any

// Rejection is an answer that is not the one asked for.
type Rejection struct {
	Code       int
	Reason     string // such as Forbidden
	Message    string
	RetryAfter int // seconds
	Cause      string
	Field      string // that is not as it should be

	resource, name string // of an object that does not exist
}

// Server is the stand-in. Make one with [New] and [Server.Close] it.
type Server struct {
	http *httptest.Server
	cut  func(down bool) // ends every connection, and may reject others

	mu       sync.Mutex
	revision int
	objects  map[string]Object // by path
	owners   map[string]*managedfields.FieldManager
	watches  map[*watch]struct{}
	down     bool
	reject   func(verb, path string) *Rejection
	forbid   func(verb, resource, namespace string) bool
	before   func(verb, path string)
	after    func(objects map[string]Object)
	writes   []string
}

// New starts a server.
func New() *Server {
	s := &Server{objects: map[string]Object{}, owners: newOwners(), watches: map[*watch]struct{}{}}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	s.cut = func(down bool) {
		if down {
			s.http.CloseClientConnections()
		}
	}
	return s
}

// URL is where the server listens.
func (s *Server) URL() string { return s.http.URL }

// Close ends the server and every connection to it.
func (s *Server) Close() {
	s.Down(true)
	s.http.Close()
}

// Down makes the server unreachable, and reachable again: connections are cut.
func (s *Server) Down(down bool) {
	s.mu.Lock()
	s.down = down
	if down {
		for w := range s.watches {
			w.end()
		}
	}
	s.mu.Unlock()
	s.cut(down)
}

// Reject has requests rejected for which f returns a rejection; nil ends it.
func (s *Server) Reject(f func(verb, path string) *Rejection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reject = f
}

// Before has f called before each request is carried out, such as to hold it
// up; nil ends it.
func (s *Server) Before(f func(verb, path string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// After has f called after each write that was carried out, with everything that
// there is then, by path below /apis; nil ends it. No other write comes
// between. f must not change what it is shown, nor call the server.
func (s *Server) After(f func(objects map[string]Object)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.after = f
}

// Writes are the writes that were carried out, "VERB path", in order.
func (s *Server) Writes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.writes...)
}

// Get returns an object, by its path below /apis; nil if there is none.
func (s *Server) Get(path string) Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects["/apis/"+path]; o != nil {
		return clone(o)
	}
	return nil
}

// Put stores an object as another client would who updates it, whatever version
// it has; Delete removes one. An object that is invalid is a mistake of the test.
func (s *Server) Put(path string, o Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := "/apis/" + path
	if rejection := s.update(at, s.objects[at], o, "another"); rejection != nil {
		panic(rejection.Message)
	}
}

// Delete removes an object as another client would.
func (s *Server) Delete(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove("/apis/" + path)
}

// Everything is all there is, by path below /apis.
func (s *Server) Everything() map[string]Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.everything()
	for path, o := range all {
		all[path] = clone(o)
	}
	return all
}

func (s *Server) everything() map[string]Object {
	all := make(map[string]Object, len(s.objects))
	for path, o := range s.objects {
		all[strings.TrimPrefix(path, "/apis/")] = o
	}
	return all
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	down, reject, before := s.down, s.reject, s.before
	s.mu.Unlock()
	if down {
		panic(http.ErrAbortHandler)
	}
	if before != nil {
		before(r.Method, r.URL.Path)
	}
	if reject != nil {
		if rejection := reject(r.Method, r.URL.Path); rejection != nil {
			rejection.write(w)
			return
		}
	}
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		s.watch(w, r)
	case r.Method == http.MethodGet:
		s.get(w, r)
	case isReview(r):
		s.review(w, r)
	default:
		s.change(w, r)
	}
}

func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[r.URL.Path]; o != nil {
		reply(w, http.StatusOK, o)
		return
	}
	if !isCollection(r.URL.Path) {
		notFound(r.URL.Path).write(w)
		return
	}
	items := []Object{}
	for path, o := range s.objects {
		if matches(o, path, r) {
			items = append(items, o)
		}
	}
	reply(w, http.StatusOK, Object{
		"apiVersion": "networking.istio.io/v1", "kind": "List", "items": items,
		"metadata": Object{"resourceVersion": strconv.Itoa(s.revision)},
	})
}

// isCollection holds for paths such as /apis/GROUP/VERSION/RESOURCE.
func isCollection(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	return len(parts) == 4 || len(parts) == 6
}

// matches reports whether a list or watch has an object in it.
func matches(o Object, path string, r *http.Request) bool {
	if path[strings.LastIndex(path[:strings.LastIndex(path, "/")], "/")+1:strings.LastIndex(path, "/")] != r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:] {
		return false
	}
	labels, _ := metadata(o)["labels"].(Object)
	for requirement := range strings.SplitSeq(r.URL.Query().Get("labelSelector"), ",") {
		name, value, ok := strings.Cut(requirement, "=")
		if ok && labels[name] != value {
			return false
		}
	}
	return true
}

func metadata(o Object) Object {
	m, ok := o["metadata"].(Object)
	if !ok {
		m = Object{}
		o["metadata"] = m
	}
	return m
}

func clone(o Object) Object {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	var out Object
	if err := json.Unmarshal(text, &out); err != nil {
		panic(err)
	}
	return out
}

func reply(w http.ResponseWriter, code int, o Object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(o)
}
