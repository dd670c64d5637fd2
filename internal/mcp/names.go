package mcp

// Synthetic is the collection of ServiceEntries that were made of a registry. In
// Pilot 1.4 a change of their endpoints is no change of configuration.
const Synthetic = "istio/networking/v1alpha3/synthetic/serviceentries"

// Annotations of synthetic ServiceEntries.
const (
	// ServiceVersion changes with everything but the endpoints, and EndpointsVersion
	// with these.
	ServiceVersion   = "networking.alpha.istio.io/serviceVersion"
	EndpointsVersion = "networking.alpha.istio.io/endpointsVersion"
	// NotReadyEndpoints are the endpoints that exist but get no traffic: "ip:port,…".
	NotReadyEndpoints = "networking.alpha.istio.io/notReadyEndpoints"
)

// TriggerCollection is the collection that a source names when it dials a sink, so that the
// sink's handler begins. The sink answers UNIMPLEMENTED.
const TriggerCollection = "$triggerCollection"
