// Package names judges names, labels, addresses and ports by the rules of Istio and of
// Kubernetes. Its functions are pure, and fast enough for the labels of thousands of
// endpoints.
package names
