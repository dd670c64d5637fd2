package write

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/isthmus-mesh/isthmus/controller"
	"github.com/isthmus-mesh/isthmus/output/istio/apiserver"
	"github.com/isthmus-mesh/isthmus/output/istio/lease"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
)

// Clash is an object of another owner that blocks a creation.
type Clash struct {
	Ref    object.Ref
	Labels map[string]string
}

// Error names the object, its owner and the fix.
func (c *Clash) Error() string {
	whose := "it lacks the labels of this Isthmus"
	if c.Labels[object.LabelManagedBy] == object.ManagedBy && c.Labels[object.LabelInstance] != "" {
		whose = "it belongs to the Isthmus instance " + c.Labels[object.LabelInstance]
	}
	return fmt.Sprintf("%s exists, and %s, so it is not changed: delete or rename it, "+
		"or hand it over by setting both labels, %s and %s", c.Ref, whose, object.LabelManagedBy, object.LabelInstance)
}

// conflict is an object that another writer keeps changing.
type conflict struct{ ref object.Ref }

func (c *conflict) Error() string {
	return fmt.Sprintf("%s: another writer keeps changing it; find it in metadata.managedFields, and stop it; "+
		"if it is another Isthmus, give it another instance, or the same leaderElection. The object is restored a few times a minute", c.ref)
}

// rejectedObject is an object that the API server, or its webhook, rejects.
type rejectedObject struct {
	ref object.Ref
	err error
}

func (r *rejectedObject) Error() string {
	return fmt.Sprintf("%s: %s", r.ref, apiserver.Explain(r.err))
}
func (r *rejectedObject) Unwrap() error { return r.err }

// asRejection adds the reason to an error of the API server, and the time of the retry if
// the API server gives one.
func asRejection(ref object.Ref, err error) error {
	if c := (*Clash)(nil); errors.As(err, &c) {
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
	if errors.As(err, &away) || errors.Is(err, errRaced) || errors.Is(err, lease.ErrExpired) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code == http.StatusConflict || code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}

// errRaced reports that the view lags. It catches up by itself.
var errRaced = errors.New("another writer created or deleted it at the same time; the write is retried")

// exists reports whether a creation failed because the object exists.
func exists(err error) bool {
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return true
	}
	status, ok := err.(apierrors.APIStatus) //nolint:errorlint // the client returns it unwrapped
	if !ok || status.Status().Code != http.StatusUnprocessableEntity || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == "metadata.resourceVersion" {
			return true
		}
	}
	return false
}

// rejected reports whether the API server, or its webhook, rejects an object because of its
// content.
func rejected(err error) bool {
	return err != nil && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsForbidden(err) && strings.Contains(err.Error(), "admission webhook"))
}
