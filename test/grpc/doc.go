// Package grpc has tests of Isthmus with gRPC's own xDS clients, in the four
// implementations that there are: Go, C-core (by Python), Node and Java. A real
// "isthmus serve" reads a folder of manifests; each client makes calls to real
// backends all the time, while endpoints come and go and Isthmus is killed.
//
// The example in examples/watch-python reads the records of such an Isthmus as its README says,
// in the Python of that client.
//
// Package clients has the clients and sets them up, which "make e2e" does before
// the tests. That needs, from Debian,
//
//	apt-get install python3-venv nodejs npm default-jdk-headless maven
//
// and takes about a minute the first time, and nothing until a pin changes:
//
//	go run ./build             # set up what is not there yet
//	go test -v ./...           # run the tests, with their figures
//	go test -run '/C-core' .   # those of one implementation
package grpc
