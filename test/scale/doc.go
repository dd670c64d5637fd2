// Package scale measures what a change of the registry costs once many clients
// are connected, and that it costs no more when there is more of everything
// that it does not concern.
//
// It holds benchmarks only. They build the real program, run it as a process of
// its own over a folder of ServiceEntry files, and connect scripted clients to
// it, each on a connection of its own:
//
//	go test -run '^$' -bench . ./test/scale
//
// Every benchmark runs once and repeats what it measures as often as -changes
// and -rounds say; -streams, -services and -endpoints set the size. The package
// reads the server's use of processors and memory from /proc, so it needs Linux.
//
// The clients are lean on purpose, because they share the machine with the
// server: they acknowledge at once, look at no more of a response than the
// protocol makes them, and keep nothing of it.
package scale
