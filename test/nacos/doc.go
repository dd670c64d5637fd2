// Package nacos has tests of Isthmus with a real Nacos, which it reads by MCP and by
// MCP-over-xDS. Instances are registered by Nacos's own client, or by its HTTP API
// where they are to miss their beats. What has come of them is looked at where the
// path ends: in an xDS client, and in the admin API.
//
// All runs in a network namespace of its own, since a Nacos listens on every address:
// the tests start themselves again in one. That needs Linux, and root or user
// namespaces that anybody may make. Package server fetches the Nacos, with Maven,
// which "make e2e" does before the tests. It needs, from Debian,
//
//	apt-get install default-jdk-headless maven
//
// and takes about a minute the first time, and nothing until a pin changes:
//
//	go run ./build      # fetch what is not there yet
//	go test ./...       # run the tests
//
// Two servers are run: one that most tests share, each with services of its own, and
// one that is killed.
package nacos
