package kubeapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
)

// watch is an open watch.
type watch struct {
	request *http.Request
	events  chan Object
	over    chan struct{}
	once    sync.Once
}

func (w *watch) end() { w.once.Do(func() { close(w.over) }) }

// watch begins with everything, if asked, and follows. A watch from an earlier
// version is rejected, so that its reader lists anew.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	mine := &watch{request: r, events: make(chan Object, 10_000), over: make(chan struct{})}
	s.mu.Lock()
	query := r.URL.Query()
	if query.Get("sendInitialEvents") == "true" {
		for path, o := range s.objects {
			if matches(o, path, r) {
				mine.events <- Object{"type": "ADDED", "object": clone(o)}
			}
		}
		mine.events <- Object{"type": "BOOKMARK", "object": Object{
			"apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry", "metadata": Object{
				"resourceVersion": strconv.Itoa(s.revision), "annotations": Object{"k8s.io/initial-events-end": "true"},
			},
		}}
	} else if query.Get("resourceVersion") != strconv.Itoa(s.revision) {
		s.mu.Unlock()
		(&Rejection{Code: http.StatusGone, Reason: "Expired", Message: "too old resource version"}).write(w)
		return
	}
	s.watches[mine] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.watches, mine)
		s.mu.Unlock()
	}()
	mine.send(w)
}

// send writes events until the watch ends.
func (w *watch) send(to http.ResponseWriter) {
	to.Header().Set("Content-Type", "application/json")
	to.WriteHeader(http.StatusOK)
	flusher, _ := to.(http.Flusher)
	flusher.Flush()
	encoder := json.NewEncoder(to)
	for {
		select {
		case <-w.request.Context().Done():
			return
		case <-w.over:
			return
		case event := <-w.events:
			if encoder.Encode(event) != nil {
				return
			}
			flusher.Flush()
		}
	}
}

// notify sends an event to the watches that have the object, or had it.
func (s *Server) notify(kind, path string, old, now Object) {
	for w := range s.watches {
		had := old != nil && matches(old, path, w.request)
		has := matches(now, path, w.request)
		event := kind
		switch {
		case !had && !has:
			continue
		case !has:
			event = "DELETED"
		case !had && kind == "MODIFIED":
			event = "ADDED"
		}
		w.events <- Object{"type": event, "object": now}
	}
}
