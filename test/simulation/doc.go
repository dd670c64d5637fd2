// Package simulation compares what sidecars do with calls on the configuration of
// Isthmus with what they do on Istio's.
//
// Istio has a model of an Envoy for its own tests: it finds the listener, the filter
// chain, the virtual host and the cluster of a call. The tests here give the same
// ServiceEntries to Istio's generator and to a real Isthmus, and make the same calls
// on both. What is expected of a call is a fact of Istio's own tests, or at least the
// same on both sides. Where Isthmus differs on purpose, both results are expected, so
// that a difference which goes away is noticed too.
//
// The model knows no weights, endpoints, timeouts or access rules.
package simulation
