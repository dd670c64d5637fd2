// Package azure mirrors services on virtual machines of Azure and on their scale sets, of
// both orchestration modes, through Azure's own SDK.
//
// A machine is read by its name, a scale set of the mode Uniform by the lists of its
// instances and their interfaces. One of the mode Flexible consists of ordinary machines,
// which are listed by the set; machines that are selected by tags are lists of a
// subscription. Addresses come from the lists of interfaces. A page that fails, or a list
// to join with, fails whatever needs it. What stays then is decided in source/machines.
//
// Services are defined in the configuration and in AzureResource objects of a Kubernetes
// cluster.
//
// Nothing is written, in Azure or in the cluster.
//
// Concurrency: a reader is used by several goroutines at once; what they share has locks.
package azure
