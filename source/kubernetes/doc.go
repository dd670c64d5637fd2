// Package kubernetes mirrors a cluster: its Services and EndpointSlices, with what its
// Nodes and Pods say of endpoints, and Istio's ServiceEntry, WorkloadEntry, WorkloadGroup
// and Sidecar.
//
// Each kind is listed and watched by itself. Services and EndpointSlices have to be
// there. A kind that is absent from the cluster, or that may not be read, is reported,
// tried again and again, and holds up nothing; what is stored of it stays. If some
// namespaces alone are read, all of this holds for each kind in each of them.
//
// A change is passed on as the API server reports it, object by object, and endpoint by
// endpoint. After a watch that could not be resumed everything of the kind is listed
// again, and what that lacks is missing, which the supervisor judges. Both are passed on
// in the order in which they came. If Services or EndpointSlices cannot be followed for
// some seconds, the run ends with the reason, and the next one lists everything.
//
// What becomes of objects is decided in convert/kubernetes and convert/istio. What
// Isthmus wrote itself is not read.
//
// Concurrency: a [Source] belongs to the goroutine that runs it. Each kind is read on a
// goroutine of its own, into a [mirror] with a lock, and all of them end before
// [Source.Run] returns.
package kubernetes
