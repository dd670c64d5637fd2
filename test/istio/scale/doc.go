// Package scale measures a large Service Center mirrored into a real API server:
// how long it takes until everything is there, what it costs when nothing
// happens, and how long a change takes. It measures the form that a large service
// is written in against another, with an istiod that reads it. And it measures
// released Envoys behind istiod: how long a change takes to reach one, and what they
// hold of a large registry, with and without scopes. Envoys behind Isthmus itself are
// measured beside those behind istiod, with the same objects and the same bootstrap.
//
// The benchmarks run the program as users do, beside kube-apiserver on etcd, and a
// stand-in for the registry in this process; the tests run those about Envoy, small:
//
//	go test -run '^$' -bench Mirror -timeout 30m ./scale    # a large registry
//	go test -run '^$' -bench Service -timeout 30m ./scale   # services by size and shardSize
//	go test -run '^$' -bench Form -timeout 60m ./scale      # endpoints inline, or as WorkloadEntries
//	go test -run '^$' -bench 'Envoy$' -services 2000 -instances 20000 -changes 1200 -pace 50ms ./scale
//	go test -run '^$' -bench 'Scope$' -instances 10000 -qps 500 -changes 20 -timeout 40m ./scale
//	go test -run '^$' -bench Beside -services 200 -instances 10000 -changes 20 ./scale
//	go test -run '^$' -bench Held -services 10000 -instances 10000 -rounds 1 ./scale
//	go test -run Small ./scale                              # the last four, small
//
// -services and -instances set the size of the registry, -changes and -pace how
// many changes are made and how often, -idle for how long nothing happens, and
// -qps the writes per second that are allowed; -program measures a program that
// exists. -endpoints lists the sizes of the service that is written in two forms,
// -shardSize is how many an object has at most in the first, and -rounds says how
// often: "-endpoints 200 -rounds 1" takes a minute. -envoys is how many follow a change. Use of processors and memory
// is read from /proc, so Linux is needed.
package scale
