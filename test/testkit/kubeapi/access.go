package kubeapi

import (
	"encoding/json"
	"net/http"
	"strings"
)

// User is as whom the server knows everyone.
const User = "somebody"

// Forbid has the server say that those things are not allowed for which f holds, to
// who asks for its rights; nil ends it. It rejects nothing by that: see [Server.Reject].
func (s *Server) Forbid(f func(verb, resource, namespace string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forbid = f
}

// isReview reports whether a request asks who somebody is, or what they may do.
func isReview(r *http.Request) bool {
	return r.Method == http.MethodPost && (strings.HasPrefix(r.URL.Path, "/apis/authorization.k8s.io/") ||
		strings.HasPrefix(r.URL.Path, "/apis/authentication.k8s.io/"))
}

// review answers one. It is no write: nothing is stored.
func (s *Server) review(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
		Spec       struct {
			ResourceAttributes struct{ Verb, Resource, Namespace string } `json:"resourceAttributes"`
		} `json:"spec"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		(&Rejection{Code: http.StatusBadRequest, Reason: "BadRequest", Message: err.Error()}).write(w)
		return
	}
	s.mu.Lock()
	forbid := s.forbid
	s.mu.Unlock()
	about := asked.Spec.ResourceAttributes
	reply(w, http.StatusCreated, Object{"kind": asked.Kind, "apiVersion": asked.APIVersion, "status": Object{
		"allowed":  forbid == nil || !forbid(about.Verb, about.Resource, about.Namespace),
		"userInfo": Object{"username": User},
	}})
}
