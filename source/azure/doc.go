// Package azure mirrors services on Azure's virtual machines and on scale sets of
// both orchestration modes, through Azure's own SDK.
//
// A machine is read by its name. A scale set of the mode Uniform is read by the lists
// of its instances and their interfaces. A scale set of the mode Flexible consists of
// ordinary machines, which are listed by the set. Machines that are selected by tags
// come from lists of a subscription. Addresses come from the lists of interfaces. A
// failing page fails its list, and a failing list fails every group that needs it.
// Package source/machines decides which machines stay then.
//
// Services are defined in the configuration and in AzureResource objects of a
// Kubernetes cluster.
//
// Nothing is written, in Azure or in the cluster.
//
// Concurrency: several goroutines use a reader at once; locks guard their shared
// state.
package azure
