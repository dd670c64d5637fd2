// Package scale measures what a change of the registry costs once many clients
// are connected, and that it costs no more when there is more of everything
// that it does not concern.
//
// Its benchmarks build the real program, run it as a process of its own over a
// folder of ServiceEntry files, and connect scripted clients to it, each on a
// connection of its own:
//
//	go test -run '^$' -bench . -timeout 1h ./test/scale
//
// Every benchmark runs once and repeats what it measures as often as -changes
// and -rounds say; -streams, -services and -endpoints set the size.
//
// BenchmarkBare puts the program beside a gRPC server that does nothing but send
// and receive as many bytes, and says what of the cost is the program's own.
//
// BenchmarkStart, BenchmarkMesh and BenchmarkOne are about one large mesh whose
// services have very different sizes; -mesh-services, -mesh-endpoints and
// -mesh-largest say how large. With -against PATH they measure another build of
// the program in the same run. TestSmallMesh takes a small mesh through the
// same in seconds, and asks only whether all is well.
//
// BenchmarkWatched compares changes of that mesh while an operator asks for the status and the
// events with changes while there are no requests.
//
// BenchmarkChain has that mesh pass from one program to another over MCP-over-xDS,
// while -chain-pace services a second change for -chain-for.
//
// The package reads the server's use of processors and memory from /proc, so
// it needs Linux.
//
// The clients are lean on purpose, because they share the machine with the
// server: they acknowledge at once, look at no more of a response than the
// protocol makes them, and keep nothing of it.
package scale
