// Package cluster runs the control plane of a mesh as processes of this
// machine: etcd, kube-apiserver with Istio's custom resource definitions, and
// istiod, and Envoys behind it. All are the real programs: Envoy is a released
// one, the others are built from their modules.
//
// A cluster lives in one folder, on free ports of 127.0.0.1. What its processes
// say is kept there, and everything that was written through the API server is
// in its audit log, see [APIServer.Writes].
package cluster
