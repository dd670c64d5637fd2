// Package resourcev1alpha1 has the messages and the gRPC service by which programs read and
// watch the records of an Isthmus. The file resource.proto describes each of them.
package resourcev1alpha1

//go:generate go -C ../../../../test/tools/protoc run . ../../../api isthmus/resource/v1alpha1/resource.proto
