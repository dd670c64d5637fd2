// Package names validates names, labels, addresses and ports by the rules of Istio and of
// Kubernetes. It knows no object: packages that read or make objects call it. Its functions
// are pure, may be called from any goroutine, and are fast enough for the labels of
// thousands of endpoints.
package names
