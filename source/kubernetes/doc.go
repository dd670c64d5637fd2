// Package kubernetes mirrors a cluster: its Services and EndpointSlices, with the data of
// Nodes and Pods about endpoints, and the kinds of Istio that package convert/istio reads or
// the configuration carries.
//
// Each kind is listed and watched by itself. Services and EndpointSlices are required. If
// another kind is absent from the cluster, or may not be read, the source reports it and
// keeps trying. The other kinds go on, and the stored records of the kind stay. If only
// some namespaces are read, all of this holds for each kind in each of them.
//
// A change is passed on as the API server reports it, object by object, and endpoint by
// endpoint. After a watch that could not be resumed, everything of the kind is listed
// again. A record that the listing lacks is missing, and the supervisor judges it. Both
// are passed on in the order of arrival. If Services or EndpointSlices cannot be followed
// for some seconds, the run ends with the reason. The next run lists everything.
//
// Packages convert/kubernetes and convert/istio turn objects into records. Objects that
// Isthmus wrote itself are not read.
//
// The layers are: configuration and API ([Config], kind), a watch of one kind (feed), the
// objects and the records made of them (objects, places, on source/mirror), the steps to
// pass on (state), and the run, which passes them on and judges which kinds cannot be read.
//
// Concurrency: a [Source] belongs to the goroutine that runs it. Each kind is read on
// a goroutine of its own, into a state with a lock. All of them end before
// [Source.Run] returns.
package kubernetes
