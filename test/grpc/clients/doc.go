// Package clients sets up one gRPC client per implementation of gRPC, each a
// program of a few lines in the folder of its language. All of them speak the
// same protocol, so that the same tests drive them:
//
//	client INTERVAL DEADLINE HOST:PORT...    # both in milliseconds
//
// The program opens a channel to xds:///HOST:PORT for each target and makes a
// call of the standard health service on each of them at the interval, whether
// or not earlier calls have been answered. Its environment names the bootstrap
// file, as GRPC_XDS_BOOTSTRAP. For each call that has ended it prints one line:
//
//	MICROSECONDS <tab> HOST:PORT <tab> answered-by header <tab> CODE: error
//
// When its input ends it makes no more calls, waits for those that are under
// way, prints "end <tab> number of calls made", and exits with status 0.
//
// What a language fetches lies in .cache/ of the repository, in a folder that is
// named after everything it was made from: the pins, the program, and the
// versions of the tools. [Setup] is not safe for concurrent use.
package clients
