// Package registry is a client of a ServiceComb Service Center: it sends requests over
// HTTP and decodes the answers.
//
// A [Client] keeps to the member that answered last, and tries the next one when a
// member is unreachable, fails, or answers nonsense. An answer is either complete and
// valid or an error; an answer without the expected field is an error, too. The
// package decides nothing about the mirrored services.
//
// Concurrency: a [Client] and its [Access] belong to one goroutine. A [Stream] belongs
// to the goroutine that listens on it, and shares nothing with the client.
package registry
