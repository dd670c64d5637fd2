package apiserver

import (
	"errors"
	"net/url"
	"strings"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Explain describes an error of the API server, and its fix.
func Explain(err error) string {
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
		return "another writer changed it at the same time; the write is retried"
	case apierrors.HasStatusCause(err, core.NamespaceTerminatingCause):
		return text + ": create the namespace again once it is deleted, or have the source use another"
	case apierrors.IsNotFound(err) && strings.Contains(text, "namespaces "):
		return text + ": create the namespace, or change the setting that names it, such as leaderElection.namespace"
	case apierrors.IsNotFound(err):
		return text + ": install Istio's custom resource definitions, version 1.22 or later"
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return text + ": grant the permission, see docs/reference/istio.md"
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return "rejected by the API server: " + text
	}
	return text
}
