package istio

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/isthmus-mesh/isthmus/controller"
)

// clash is an object of another owner that blocks a creation.
type clash struct {
	ref    Ref
	labels map[string]string
}

func (c *clash) Error() string {
	whose := "it has not the labels of this Isthmus"
	if c.labels[labelManagedBy] == managedBy && c.labels[labelInstance] != "" {
		whose = "it belongs to the Isthmus instance " + c.labels[labelInstance]
	}
	return fmt.Sprintf("%s exists, and %s, so it is left alone: delete or rename it, "+
		"or hand it over by setting both labels, %s and %s", c.ref, whose, labelManagedBy, labelInstance)
}

// contest is an object that another writer keeps changing.
type contest struct{ ref Ref }

func (c *contest) Error() string {
	return fmt.Sprintf("%s: somebody keeps changing it; find out who by its managedFields, and have them leave it; "+
		"if it is another Isthmus, give it another instance, or the same leaderElection. It is restored a few times in a minute", c.ref)
}

// rejectedObject is an object that the API server, or its webhook, rejects.
type rejectedObject struct {
	ref Ref
	err error
}

func (r *rejectedObject) Error() string { return fmt.Sprintf("%s: %s", r.ref, explain(r.err)) }
func (r *rejectedObject) Unwrap() error { return r.err }

// asRejection adds the reason to an error of the API server, and the time of the retry if
// the API server gives one.
func asRejection(ref Ref, err error) error {
	if c := (*clash)(nil); errors.As(err, &c) {
		return err
	}
	rejection := &rejectedObject{ref, err}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok && seconds > 0 {
		return &controller.Retry{Err: rejection, After: time.Duration(seconds) * time.Second}
	}
	if passes(err) {
		return &controller.Temporary{Err: rejection}
	}
	return rejection
}

// passes reports whether an error is caused by the API server, the network or the moment,
// and not by the object: a retry soon is useful.
func passes(err error) bool {
	away := (*url.Error)(nil)
	if errors.As(err, &away) || errors.Is(err, errRaced) || errors.Is(err, errLeaseExpired) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code == http.StatusConflict || code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}

// explain describes an error of the API server, and its fix.
func explain(err error) string {
	if away := (*url.Error)(nil); errors.As(err, &away) {
		return "the API server cannot be reached: " + away.Err.Error()
	}
	text := err.Error()
	_, webhook, denied := strings.Cut(text, "admission webhook")
	switch {
	case apierrors.IsTooManyRequests(err):
		return "the API server is overloaded: " + text
	case denied:
		return "rejected by the admission webhook" + webhook
	case apierrors.IsConflict(err):
		return "somebody else has changed it at the same time; it is looked at again"
	case apierrors.HasStatusCause(err, core.NamespaceTerminatingCause):
		return text + ": it can be written when the namespace is created anew, or the source chooses another"
	case apierrors.IsNotFound(err) && strings.Contains(text, "namespaces "):
		return text + ": create the namespace, or have the source choose another"
	case apierrors.IsNotFound(err):
		return text + ": install Istio's custom resource definitions, version 1.22 or later"
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return text + ": allow it, see docs/reference/istio.md"
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return "rejected by the API server: " + text
	}
	return text
}
