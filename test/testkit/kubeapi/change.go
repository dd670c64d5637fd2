package kubeapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// change carries out a write.
func (s *Server) change(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var said Object
	if len(body) > 0 {
		if err := json.Unmarshal(body, &said); err != nil {
			(&Rejection{Code: http.StatusBadRequest, Reason: "BadRequest", Message: err.Error()}).write(w)
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := r.URL.Path
	if r.Method == http.MethodPost {
		at += "/" + fmt.Sprint(metadata(said)["name"])
	}
	rejection := s.carryOut(r.Method, at, said, manager(r))
	if rejection != nil {
		rejection.write(w)
		return
	}
	if !strings.Contains(at, "/events/") { // an Event is about an object, and changes none
		s.writes = append(s.writes, r.Method+" "+strings.TrimPrefix(at, "/apis/"))
	}
	if s.after != nil {
		s.after(s.everything())
	}
	if o := s.objects[at]; o != nil {
		reply(w, http.StatusOK, o)
		return
	}
	reply(w, http.StatusOK, Object{"kind": "Status", "apiVersion": "v1", "status": "Success"})
}

func (s *Server) carryOut(method, at string, said Object, by string) *Rejection {
	is := s.objects[at]
	switch method {
	case http.MethodPost:
		if is != nil {
			return &Rejection{Code: http.StatusConflict, Reason: "AlreadyExists", Message: at + " already exists"}
		}
		return s.update(at, nil, said, by)
	case http.MethodPut:
		if is == nil {
			return notFound(at)
		}
		if rejection := precondition(at, is, metadata(said)); rejection != nil {
			return rejection
		}
		return s.update(at, is, said, by)
	case http.MethodPatch:
		return s.apply(at, is, said, by)
	case http.MethodDelete:
		if is == nil {
			return notFound(at)
		}
		expected, _ := said["preconditions"].(Object)
		if rejection := precondition(at, is, expected); rejection != nil {
			return rejection
		}
		s.remove(at)
	}
	return nil
}

// update puts an object in the place of another, which is nil if there is none.
func (s *Server) update(at string, is, said Object, by string) *Rejection {
	return s.take(at, func() (Object, error) { return s.updated(is, said, by) })
}

// apply is server-side apply by force: what was applied and is not any more
// goes, what others have added stays.
func (s *Server) apply(at string, is, said Object, by string) *Rejection {
	wanted := metadata(said)
	if is == nil {
		if version, ok := wanted["resourceVersion"]; ok && version != "0" {
			return &Rejection{Code: http.StatusConflict, Reason: "Conflict", Message: at + " is gone"}
		}
	} else if rejection := precondition(at, is, wanted); rejection != nil {
		return rejection
	}
	delete(wanted, "resourceVersion")
	delete(wanted, "uid")
	return s.take(at, func() (Object, error) { return s.merged(is, said, by) })
}

// take stores what came of a write, if it is valid.
func (s *Server) take(at string, next func() (Object, error)) *Rejection {
	o, err := next()
	if err != nil {
		return &Rejection{Code: http.StatusBadRequest, Reason: "BadRequest", Message: err.Error()}
	}
	if rejection := invalid(at, o); rejection != nil {
		return rejection
	}
	s.store(at, o)
	return nil
}

// precondition holds the version and the life that a write expects against what is.
func precondition(at string, is, expected Object) *Rejection {
	has := metadata(is)
	if version, ok := expected["resourceVersion"]; ok && version != has["resourceVersion"] {
		if version == "0" {
			return &Rejection{Code: http.StatusUnprocessableEntity, Reason: "Invalid", Message: at + " must be specified for an update", Field: "metadata.resourceVersion"}
		}
		return &Rejection{Code: http.StatusConflict, Reason: "Conflict", Message: at + " has been modified"}
	}
	if uid, ok := expected["uid"]; ok && uid != has["uid"] {
		return &Rejection{Code: http.StatusConflict, Reason: "Conflict", Message: at + " is another one"}
	}
	return nil
}

// store and remove change an object and tell the watches. A write that changes
// nothing is none.
func (s *Server) store(at string, o Object) {
	meta := metadata(o)
	kind := "ADDED"
	old := s.objects[at]
	if old != nil {
		kind = "MODIFIED"
		meta["uid"], meta["resourceVersion"] = metadata(old)["uid"], metadata(old)["resourceVersion"]
		if same(old, o) {
			return
		}
	} else {
		meta["uid"] = fmt.Sprintf("uid-%d", s.revision+1)
	}
	s.revision++
	meta["resourceVersion"] = strconv.Itoa(s.revision)
	s.objects[at] = o
	s.notify(kind, at, old, clone(o))
}

func (s *Server) remove(at string) {
	is := s.objects[at]
	if is == nil {
		return
	}
	delete(s.objects, at)
	s.revision++
	gone := clone(is)
	metadata(gone)["resourceVersion"] = strconv.Itoa(s.revision)
	s.notify("DELETED", at, is, gone)
}

func same(a, b Object) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func notFound(at string) *Rejection {
	return &Rejection{
		Code: http.StatusNotFound, Reason: "NotFound", Message: path.Base(at) + " not found",
		resource: path.Base(path.Dir(at)), name: path.Base(at),
	}
}

func (r *Rejection) write(w http.ResponseWriter) {
	details := Object{}
	if r.name != "" {
		details["kind"], details["name"] = r.resource, r.name
	}
	if r.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(r.RetryAfter))
		details["retryAfterSeconds"] = r.RetryAfter
	}
	if r.Field != "" {
		details["causes"] = []Object{{"reason": "FieldValueInvalid", "field": r.Field, "message": r.Message}}
	}
	if r.Cause != "" {
		details["causes"] = []Object{{"reason": r.Cause, "message": r.Message}}
	}
	reply(w, r.Code, Object{
		"kind": "Status", "apiVersion": "v1", "status": "Failure",
		"code": r.Code, "reason": r.Reason, "message": r.Message, "details": details,
	})
}
