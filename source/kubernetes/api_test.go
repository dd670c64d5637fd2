package kubernetes_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/isthmus-mesh/isthmus/convert/istio"
)

// apiServer is as much of an API server as a reader of objects meets: lists and watches
// with versions, of which those that are too old cannot be resumed. It is a transport, so
// that it can be had in a bubble of fake time.
type apiServer struct {
	listOnly bool // watches do not begin with a list, as in API servers before 1.32
	unmarked bool // watches have no bookmarks in between

	mu       sync.Mutex
	revision int
	oldest   int // the version from which on watches can be resumed
	objects  map[string]map[string]object
	history  []event
	watches  map[*stream]bool
	fault    fault // nil while there is none
}

// object is one as it is stored.
type object = map[string]any

// event is a change of an object.
type event struct {
	resource, kind string
	revision       int
	object         object
}

// fault answers instead of the server. Without an answer and an error it lets the server
// answer.
type fault func(r *http.Request) (*http.Response, error)

func newAPIServer(listOnly bool) *apiServer {
	return &apiServer{listOnly: listOnly, revision: 1, oldest: 1, objects: map[string]map[string]object{}, watches: map[*stream]bool{}}
}

// RoundTrip implements [http.RoundTripper].
func (a *apiServer) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := a.answer(r)
	if response != nil {
		response.Request = r
	}
	return response, err
}

func (a *apiServer) answer(r *http.Request) (*http.Response, error) {
	if f := a.failing(); f != nil {
		if response, err := f(r); response != nil || err != nil {
			return response, err
		}
	}
	if group, _, resource := asked(r); group != versions[resource] && group != "api/v1" {
		return rejection(http.StatusNotFound, "NotFound"), nil
	}
	if r.URL.Query().Get("watch") == "" {
		return a.list(r), nil
	}
	return a.watch(r), nil
}

// asked says what a request is for: objects of a resource, in one namespace or in all.
func asked(r *http.Request) (group, namespace, resource string) {
	group, resource = path.Split(strings.TrimPrefix(r.URL.Path, "/apis"))
	group, namespace, _ = strings.Cut(strings.Trim(group, "/"), "/namespaces/")
	return group, namespace, resource
}

// list answers with all objects of a resource. One that may be of any version is as old
// as a cache can be: nothing had been written yet.
func (a *apiServer) list(r *http.Request) *http.Response {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, namespace, resource := asked(r)
	items, version := []object{}, "1"
	if r.URL.Query().Get("resourceVersion") != "0" {
		items, version = a.sorted(resource, namespace), strconv.Itoa(a.revision)
	}
	of, kind := versions[resource], kinds[resource]+"List"
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") {
		of, kind = "meta.k8s.io/v1", "PartialObjectMetadataList"
		for i, o := range items {
			items[i] = object{"metadata": o["metadata"]}
		}
	}
	return answer(http.StatusOK, object{"apiVersion": of, "kind": kind, "metadata": object{"resourceVersion": version}, "items": items})
}

func (a *apiServer) sorted(resource, namespace string) []object {
	items := []object{}
	for _, name := range slices.Sorted(maps.Keys(a.objects[resource])) {
		if o := a.objects[resource][name]; isIn(namespace, o) {
			items = append(items, o)
		}
	}
	return items
}

// isIn reports whether an object is in a namespace; every one is if it is empty.
func isIn(namespace string, o object) bool {
	metadata, _ := o["metadata"].(object)
	return namespace == "" || namespace == metadata["namespace"]
}

// watch begins with everything, if asked, or with what has changed since a version.
func (a *apiServer) watch(r *http.Request) *http.Response {
	a.mu.Lock()
	defer a.mu.Unlock()
	query := r.URL.Query()
	_, namespace, resource := asked(r)
	s := &stream{of: r, resource: resource, namespace: namespace, wake: make(chan struct{}, 1), closed: func(s *stream) {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.watches, s)
	}}
	since, _ := strconv.Atoi(query.Get("resourceVersion"))
	switch {
	case query.Get("sendInitialEvents") != "true":
		if since < a.oldest {
			s.send("ERROR", status(http.StatusGone, "Expired"))
			s.end(io.EOF)
			break
		}
		for _, e := range a.history {
			if s.has(e) && e.revision > since {
				s.send(e.kind, e.object)
			}
		}
	case a.listOnly:
		return rejection(http.StatusUnprocessableEntity, "Invalid")
	default:
		for _, o := range a.sorted(resource, namespace) {
			s.send("ADDED", o)
		}
		s.send("BOOKMARK", a.bookmark(resource, object{"k8s.io/initial-events-end": "true"}))
	}
	a.watches[s] = true
	return s.answer(r)
}

func (a *apiServer) bookmark(resource string, annotations object) object {
	return object{"apiVersion": versions[resource], "kind": kinds[resource], "metadata": object{
		"resourceVersion": strconv.Itoa(a.revision), "annotations": annotations, "creationTimestamp": nil,
	}}
}

// write makes the objects of a resource be these, by name. They are in the namespace shop
// if none stands before the name, with a slash.
func (a *apiServer) write(resource string, objects map[string]object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		if old, there := a.objects[resource][name]; !there || !sameSpec(old, objects[name]) {
			a.change(resource, name, objects[name], there)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.objects[resource])) {
		if objects[name] == nil {
			a.change(resource, name, nil, true)
		}
	}
	for s := range a.watches {
		if !a.unmarked {
			s.send("BOOKMARK", a.bookmark(s.resource, nil))
		}
	}
}

// change stores an object, or deletes it, and reports that.
func (a *apiServer) change(resource, name string, o object, there bool) {
	a.revision++
	e := event{resource: resource, kind: "ADDED", revision: a.revision}
	switch {
	case o == nil:
		e.kind, o = "DELETED", maps.Clone(a.objects[resource][name])
	case there:
		e.kind = "MODIFIED"
	}
	labels, _ := o["metadata"].(object)
	namespace, bare, is := strings.Cut(name, "/")
	if !is {
		namespace, bare = "shop", name
	}
	o["metadata"] = object{
		"namespace": namespace, "name": bare, "uid": "of-" + name, "labels": labels["labels"], "resourceVersion": strconv.Itoa(a.revision),
	}
	o["apiVersion"], o["kind"] = versions[resource], kinds[resource]
	e.object = o
	if a.objects[resource] == nil {
		a.objects[resource] = map[string]object{}
	}
	if a.objects[resource][name] = o; e.kind == "DELETED" {
		delete(a.objects[resource], name)
	}
	a.history = append(a.history, e)
	for s := range a.watches {
		if s.has(e) {
			s.send(e.kind, o)
		}
	}
}

func sameSpec(a, b object) bool {
	text := func(o object) string {
		rest := maps.Clone(o)
		metadata, _ := rest["metadata"].(object)
		rest["metadata"], rest["apiVersion"], rest["kind"] = metadata["labels"], nil, nil
		return fmt.Sprint(rest)
	}
	return text(a) == text(b)
}

// fail has requests fail from now on, and ends the watches with an error, or in the
// middle of an event.
func (a *apiServer) fail(f fault, last func(*stream)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fault = f
	for s := range a.watches {
		last(s)
	}
	clear(a.watches)
}

// failing is how requests fail.
func (a *apiServer) failing() fault {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.fault
}

// compact has no watch be resumed from a version until now.
func (a *apiServer) compact() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.revision++
	a.oldest, a.history = a.revision, nil
}

// stream is the answer to a watch. Its methods may be called from any goroutine.
type stream struct {
	of        *http.Request
	resource  string
	namespace string // empty for all
	wake      chan struct{}
	closed    func(*stream)

	mu   sync.Mutex
	text bytes.Buffer
	over error // after the text
}

// answer returns the stream as the answer to a watch.
func (s *stream) answer(r *http.Request) *http.Response {
	s.of = r
	return &http.Response{StatusCode: http.StatusOK, Body: s, ContentLength: -1, Header: jsonHeader()}
}

func (s *stream) has(e event) bool { return s.resource == e.resource && isIn(s.namespace, e.object) }

func (s *stream) send(kind string, o object) { s.write(encode(object{"type": kind, "object": o})) }

func (s *stream) write(text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(text)
	s.notify()
}

func (s *stream) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = err
	s.notify()
}

func (s *stream) notify() {
	select {
	case s.wake <- struct{}{}:
	default: // it is going to look anyway
	}
}

// Read implements [io.Reader].
func (s *stream) Read(p []byte) (int, error) {
	for {
		s.mu.Lock()
		n, _ := s.text.Read(p)
		over := s.over
		s.mu.Unlock()
		if n > 0 {
			return n, nil
		}
		if over != nil {
			return 0, over
		}
		select {
		case <-s.wake:
		case <-s.of.Context().Done():
			return 0, s.of.Context().Err()
		}
	}
}

// Close implements [io.Closer].
func (s *stream) Close() error {
	s.closed(s)
	s.end(http.ErrBodyReadAfterClose)
	return nil
}

func encode(o any) []byte {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return append(text, '\n')
}

func jsonHeader() http.Header { return http.Header{"Content-Type": {"application/json"}} }

func answer(code int, o any) *http.Response { return body(code, string(encode(o))) }

func body(code int, text string) *http.Response {
	return &http.Response{
		StatusCode: code, Status: fmt.Sprint(code, " ", http.StatusText(code)), Header: jsonHeader(),
		Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)),
	}
}

func status(code int, reason string) object {
	return object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": "as drawn"}
}

func rejection(code int, reason string) *http.Response { return answer(code, status(code, reason)) }

// The kind and the API version of each resource.
var kinds, versions = served()

func served() (kinds, versions map[string]string) {
	kinds = map[string]string{"services": "Service", "endpointslices": "EndpointSlice", "nodes": "Node", "pods": "Pod"}
	versions = map[string]string{"services": "v1", "endpointslices": "discovery.k8s.io/v1", "nodes": "v1", "pods": "v1"}
	for _, d := range istio.Definitions() {
		kinds[d.Resource()], versions[d.Resource()] = d.Name, d.Group+"/"+d.Version
	}
	return kinds, versions
}
