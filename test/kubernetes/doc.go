// Package kubernetes runs Isthmus on real API servers of Kubernetes as registries. Its
// tests change Services, EndpointSlices and Istio's objects there, cut the connections,
// kill the servers, and look at what Isthmus makes of it.
package kubernetes
