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
