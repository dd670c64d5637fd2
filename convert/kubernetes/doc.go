// Package kubernetes makes records of the objects of a Kubernetes cluster that describe
// services: Service and EndpointSlice, with Node's and Pod's attributes of endpoints. No
// other package knows their content. It does no I/O.
//
// Each object is read into the few fields that count, by [ReadService], [ReadSlice],
// [ReadNode] and [ReadPod], so that a cluster of many objects takes little memory. A
// [Group] is a Service with its slices. It keeps one record for each endpoint: a changed
// slice gives the different records, whatever the size of the Service.
//
//	group := kubernetes.NewGroup(cluster, name, places, index)
//	group.SetService(&service)
//	group.SetSlice(slice)
//	changed := group.Take() // the records that differ
//
// The rules are those of kube-proxy and of Istio: docs/reference/kubernetes.md lists them,
// with the fields that are not kept. Objects come from an API server, which has validated
// them, so nothing here rejects one. Slices of names do not belong in a Group: the reader
// leaves them out, and counts them.
//
// A [Group] belongs to one goroutine. All other functions share nothing.
package kubernetes
