// Package kubeapi is as much of a Kubernetes API server as a writer of objects
// meets: list, watch, server-side apply, replace and delete with preconditions,
// over HTTP. It keeps the rules on which writers depend — versions, lives,
// conflicts — and can be asked to reject, to be overloaded and to be away. The
// real one is under test/istio; this one stands in where a test has to make it
// misbehave at a certain moment.
package kubeapi
